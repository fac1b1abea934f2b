# RetinaNet with PyramidTNT-B, COCO 1x.
_base_ = ['_base_/models/retinanet_ptnt.py', '_base_/detection_1x.py']

model = dict(
    backbone=dict(arch='base'),
    neck=[dict(part, in_channels=[512, 1024, 1024]) for part in _base_.model.neck],
)
