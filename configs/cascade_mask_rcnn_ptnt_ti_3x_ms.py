# Cascade Mask R-CNN with PyramidTNT-Ti, COCO 3x with multi-scale training.
_base_ = ['_base_/models/cascade_ptnt.py', '_base_/instance_3x_ms.py']

model = dict(
    backbone=dict(arch='tiny', drop_path_rate=0.2),
    neck=[dict(part, in_channels=[80, 160, 320, 320]) for part in _base_.model.neck],
)
