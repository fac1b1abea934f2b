# GFL with PyramidTNT-B, COCO 3x with multi-scale training.
_base_ = ['_base_/archs/ptnt_b.py', '_base_/models/gfl_ptnt.py', '_base_/detection_3x_ms.py']

_base_.model.backbone.arch = _base_.pop('arch')
_base_.model.neck[0].in_channels = _base_.model.neck[1].in_channels = _base_.pop('channels')[1:]
