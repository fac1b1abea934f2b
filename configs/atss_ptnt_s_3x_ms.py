# ATSS with PyramidTNT-S, COCO 3x with multi-scale training.
_base_ = ['_base_/models/atss_ptnt.py', '_base_/detection_3x_ms.py']
