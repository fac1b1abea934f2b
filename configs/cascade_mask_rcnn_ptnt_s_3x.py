# Cascade Mask R-CNN with PyramidTNT-S, COCO 3x.
_base_ = ['_base_/models/cascade_ptnt.py', '_base_/instance_3x.py']

model = dict(backbone=dict(drop_path_rate=0.2))
