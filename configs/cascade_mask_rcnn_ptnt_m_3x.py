# Cascade Mask R-CNN with PyramidTNT-M, COCO 3x.
_base_ = ['_base_/models/cascade_ptnt.py', '_base_/instance_3x.py']

model = dict(
    backbone=dict(arch='medium', drop_path_rate=0.2),
    neck=[dict(part, in_channels=[192, 384, 768, 768]) for part in _base_.model.neck],
)
