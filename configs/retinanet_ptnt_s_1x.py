# RetinaNet with PyramidTNT-S, COCO 1x; the paper reports 42.0 AP (arXiv 2201.00978).
# 8 GPUs x 2 images. Load the ImageNet weights with `ptnt train --pretrained FILE`.
_base_ = ['_base_/archs/ptnt_s.py', '_base_/models/retinanet_ptnt.py', '_base_/detection_1x.py']

_base_.model.backbone.arch = _base_.pop('arch')
_base_.model.neck[0].in_channels = _base_.model.neck[1].in_channels = _base_.pop('channels')[1:]
