_base_ = './upernet_ptnt_s.py'

_base_.model.backbone.arch = 'base'
_base_.model.neck.in_channels = _base_.model.decode_head.in_channels = [256, 512, 1024, 1024]
_base_.model.auxiliary_head.in_channels = 1024
