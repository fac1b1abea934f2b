# RetinaNet with TNT-S and its ImageNet weights, COCO 1x. Our recipe, not the paper's.
_base_ = [
    '_base_/archs/tnt_s_pretrained.py',
    'mmdet::_base_/models/retinanet_r50_fpn.py',
    '_base_/detection_1x.py',
]

model = dict(
    data_preprocessor=_base_.pop('scaling'),
    backbone=dict(_delete_=True, **_base_.pop('backbone')),
    # The one map, at stride 16, becomes the five levels of RetinaNet.
    neck=dict(
        _delete_=True,
        type='SimpleFeaturePyramid',
        in_channels=_base_.pop('channels'),
        out_channels=256,
        out_strides=(8, 16, 32, 64, 128),
    ),
)
