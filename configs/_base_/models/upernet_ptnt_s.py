# UPerNet for ADE20K. Ours: the paper has no segmentation.
_base_ = 'mmseg::_base_/models/upernet_swin.py'

data_preprocessor = dict(
    # The published weights were trained on images scaled to [-1, 1], not on ImageNet's mean.
    mean=[127.5, 127.5, 127.5],
    std=[127.5, 127.5, 127.5],
    size=(512, 512),
    # In testing no image is smaller than the backbone's smallest.
    test_cfg=dict(size=(8, 8)),
)
model = dict(
    data_preprocessor=data_preprocessor,
    backbone=dict(_delete_=True, type='PyramidTNT', arch='small', drop_path_rate=0.2),
    # From strides 8, 16, 32, 64 to 4, 8, 16, 32.
    neck=dict(type='TransposedConvNeck', in_channels=[128, 256, 512, 512]),
    decode_head=dict(in_channels=[128, 256, 512, 512], num_classes=150),
    auxiliary_head=dict(in_channels=512, num_classes=150),
    # Sliding windows: --cfg-options model.test_cfg.mode=slide
    test_cfg=dict(crop_size=(512, 512), stride=(341, 341)),
)
