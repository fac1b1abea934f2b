# Mask R-CNN with PyramidTNT-B, COCO 1x.
_base_ = ['_base_/archs/ptnt_b.py', '_base_/models/mask_rcnn_ptnt.py', '_base_/instance_1x.py']

_base_.model.backbone.arch = _base_.pop('arch')
_base_.model.neck[0].in_channels = _base_.model.neck[1].in_channels = _base_.pop('channels')
