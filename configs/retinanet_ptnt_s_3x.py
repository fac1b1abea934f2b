# RetinaNet with PyramidTNT-S, COCO 3x.
_base_ = ['_base_/models/retinanet_ptnt.py', '_base_/detection_3x.py']

model = dict(backbone=dict(drop_path_rate=0.2))
