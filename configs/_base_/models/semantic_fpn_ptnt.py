# Semantic FPN with PyramidTNT-S for ADE20K. Our recipe: the paper has no semantic segmentation.
# A leaf of another size sets the arch and the channels.
_base_ = 'mmseg::_base_/models/fpn_r50.py'

data_preprocessor = dict(
    # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
    mean=[127.5, 127.5, 127.5],
    std=[127.5, 127.5, 127.5],
    size=(512, 512),
    # Test images are padded to multiples of the backbone's last stride: otherwise the coarsest map
    # covers more than the image, and resizing it shifts the predictions.
    test_cfg=dict(size_divisor=64),
)
model = dict(
    data_preprocessor=data_preprocessor,
    pretrained=None,
    backbone=dict(_delete_=True, type='PyramidTNT', arch='small', drop_path_rate=0.1),
    neck=[
        # Strides 8, 16, 32, 64 become 4, 8, 16, 32.
        dict(type='TransposedConvNeck', in_channels=[128, 256, 512, 512]),
        dict(type='FPN', in_channels=[128, 256, 512, 512], out_channels=256, num_outs=4),
    ],
    decode_head=dict(num_classes=150),
    # For sliding windows: --cfg-options model.test_cfg.mode=slide
    test_cfg=dict(crop_size=(512, 512), stride=(341, 341)),
)
