# RetinaNet with PyramidTNT-S, COCO 3x with multi-scale training.
_base_ = ['_base_/models/retinanet_ptnt.py', '_base_/detection_3x_ms.py']

model = dict(backbone=dict(drop_path_rate=0.2))
