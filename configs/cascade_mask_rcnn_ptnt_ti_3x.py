# Cascade Mask R-CNN with PyramidTNT-Ti, COCO 3x.
_base_ = ['_base_/archs/ptnt_ti.py', '_base_/models/cascade_ptnt.py', '_base_/instance_3x.py']

_base_.model.backbone.arch = _base_.pop('arch')
_base_.model.neck[0].in_channels = _base_.model.neck[1].in_channels = _base_.pop('channels')
_base_.model.backbone.drop_path_rate = 0.2
