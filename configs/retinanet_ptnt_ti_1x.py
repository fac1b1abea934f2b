# RetinaNet with PyramidTNT-Ti, COCO 1x.
_base_ = ['_base_/models/retinanet_ptnt.py', '_base_/detection_1x.py']

model = dict(
    backbone=dict(arch='tiny'),
    neck=[dict(part, in_channels=[160, 320, 320]) for part in _base_.model.neck],
)
