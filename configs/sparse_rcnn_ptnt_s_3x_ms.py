# Sparse R-CNN with PyramidTNT-S, COCO 3x with multi-scale training.
_base_ = '_base_/sparse_rcnn_ptnt_3x_ms.py'
