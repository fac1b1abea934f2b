# Sparse R-CNN with PyramidTNT-M, COCO 3x with multi-scale training.
_base_ = '_base_/sparse_rcnn_ptnt_3x_ms.py'

model = dict(
    backbone=dict(arch='medium'),
    neck=[dict(part, in_channels=[192, 384, 768, 768]) for part in _base_.model.neck],
)
