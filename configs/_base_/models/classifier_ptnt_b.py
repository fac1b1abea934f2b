_base_ = './classifier_ptnt_s.py'

_base_.model.backbone.arch = 'base'
_base_.model.head.in_channels = 1024
