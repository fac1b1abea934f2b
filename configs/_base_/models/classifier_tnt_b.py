_base_ = './classifier_tnt_s.py'

_base_.model.backbone.arch = 'base'
_base_.model.head.in_channels = 640
