# GFL with PyramidTNT-S, COCO 3x with multi-scale training.
_base_ = ['_base_/models/gfl_ptnt.py', '_base_/detection_3x_ms.py']
