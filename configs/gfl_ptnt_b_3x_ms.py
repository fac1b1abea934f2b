# GFL with PyramidTNT-B, COCO 3x with multi-scale training.
_base_ = ['_base_/models/gfl_ptnt.py', '_base_/detection_3x_ms.py']

model = dict(
    backbone=dict(arch='base'),
    neck=[dict(part, in_channels=[512, 1024, 1024]) for part in _base_.model.neck],
)
