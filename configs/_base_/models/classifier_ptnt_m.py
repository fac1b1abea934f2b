_base_ = './classifier_ptnt_s.py'

_base_.model.backbone.arch = 'medium'
_base_.model.head.in_channels = 768
