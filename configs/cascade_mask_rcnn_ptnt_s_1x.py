# Cascade Mask R-CNN with PyramidTNT-S, COCO 1x.
_base_ = ['_base_/models/cascade_ptnt.py', '_base_/instance_1x.py']
