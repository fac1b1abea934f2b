# RetinaNet with TNT-S and its ImageNet weights, COCO 1x. Our recipe, not the paper's.
_base_ = ['mmdet::_base_/models/retinanet_r50_fpn.py', '_base_/detection_1x.py']

model = dict(
    # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
    data_preprocessor=dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]),
    backbone=dict(
        _delete_=True,
        type='TNT',
        arch='small',
        drop_path_rate=0.1,
        # One of `ptnt weights`, downloaded once; offline, the error states where to put it.
        init_cfg=dict(type='Pretrained', checkpoint='tnt_s'),
    ),
    # The one map, at stride 16, becomes the five levels of RetinaNet.
    neck=dict(
        _delete_=True,
        type='SimpleFeaturePyramid',
        in_channels=384,
        out_channels=256,
        out_strides=(8, 16, 32, 64, 128),
    ),
)
