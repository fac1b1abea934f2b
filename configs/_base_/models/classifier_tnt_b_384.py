_base_ = './classifier_tnt_s_384.py'

_base_.model.backbone.arch = 'base'
_base_.model.backbone.init_cfg.checkpoint = 'tnt_b'
_base_.model.head.in_channels = 640
