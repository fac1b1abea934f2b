_base_ = './classifier_cpvt_ti.py'

_base_.model.backbone.arch = 'base'
_base_.model.head.in_channels = 768
