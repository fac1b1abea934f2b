_base_ = './classifier_cpvt_ti.py'

_base_.model.backbone.arch = 'small'
_base_.model.head.in_channels = 384
