# GFL with PyramidTNT-M, COCO 3x with multi-scale training.
_base_ = ['_base_/models/gfl_ptnt.py', '_base_/detection_3x_ms.py']

model = dict(
    backbone=dict(arch='medium'),
    neck=[dict(part, in_channels=[384, 768, 768]) for part in _base_.model.neck],
)
