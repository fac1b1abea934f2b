# Semantic FPN with TNT-S, ADE20K, 8 GPUs x 4 images. Our recipe, not the paper's.
_base_ = ['mmseg::_base_/models/fpn_r50.py', '../_base_/ade20k_40k.py']

data_preprocessor = dict(
    # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
    mean=[127.5, 127.5, 127.5],
    std=[127.5, 127.5, 127.5],
    size=(512, 512),
    # Test images are padded to multiples of the neck's last stride, so that no map is squeezed.
    test_cfg=dict(size_divisor=32),
)
model = dict(
    data_preprocessor=data_preprocessor,
    pretrained=None,
    backbone=dict(
        _delete_=True,
        type='TNT',
        arch='small',
        drop_path_rate=0.1,
        # One of `ptnt weights`, downloaded once; offline, the error states where to put it.
        init_cfg=dict(type='Pretrained', checkpoint='tnt_s'),
    ),
    # The one map, at stride 16, becomes the four levels of the head.
    neck=dict(
        _delete_=True,
        type='SimpleFeaturePyramid',
        in_channels=384,
        out_channels=256,
        out_strides=(4, 8, 16, 32),
    ),
    decode_head=dict(num_classes=150),
    # For sliding windows: --cfg-options model.test_cfg.mode=slide
    test_cfg=dict(crop_size=(512, 512), stride=(341, 341)),
)
