# Sparse R-CNN with PyramidTNT-Ti, COCO 3x with multi-scale training.
_base_ = '_base_/sparse_rcnn_ptnt_3x_ms.py'

model = dict(
    backbone=dict(arch='tiny'),
    neck=[dict(part, in_channels=[80, 160, 320, 320]) for part in _base_.model.neck],
)
