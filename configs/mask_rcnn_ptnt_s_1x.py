# Mask R-CNN with PyramidTNT-S, COCO 1x.
_base_ = ['_base_/models/mask_rcnn_ptnt.py', '_base_/instance_1x.py']
