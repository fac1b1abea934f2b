# RetinaNet with PyramidTNT-B on its own strides, 8 to 64, COCO 1x. Ours; see docs/training.md.
_base_ = ['../_base_/models/retinanet_native.py', '../_base_/detection_1x.py']

model = dict(backbone=dict(arch='base'), neck=dict(in_channels=[256, 512, 1024, 1024]))
