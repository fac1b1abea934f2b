# Mask R-CNN with PyramidTNT-Ti, COCO 3x.
_base_ = ['_base_/models/mask_rcnn_ptnt.py', '_base_/instance_3x.py']

model = dict(
    backbone=dict(arch='tiny', drop_path_rate=0.2),
    neck=[dict(part, in_channels=[80, 160, 320, 320]) for part in _base_.model.neck],
)
