# RetinaNet with PyramidTNT-M, COCO 1x.
_base_ = ['_base_/models/retinanet_ptnt.py', '_base_/detection_1x.py']

model = dict(
    backbone=dict(arch='medium'),
    neck=[dict(part, in_channels=[384, 768, 768]) for part in _base_.model.neck],
)
