# Mask R-CNN with PyramidTNT-S, COCO 3x with multi-scale training.
_base_ = ['_base_/models/mask_rcnn_ptnt.py', '_base_/instance_3x_ms.py']

model = dict(backbone=dict(drop_path_rate=0.2))
