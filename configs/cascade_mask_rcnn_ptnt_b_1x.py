# Cascade Mask R-CNN with PyramidTNT-B, COCO 1x.
_base_ = ['_base_/models/cascade_ptnt.py', '_base_/instance_1x.py']

model = dict(
    backbone=dict(arch='base'),
    neck=[dict(part, in_channels=[256, 512, 1024, 1024]) for part in _base_.model.neck],
)
