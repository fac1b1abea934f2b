_base_ = './upernet_ptnt_s.py'

_base_.model.backbone.arch = 'medium'
_base_.model.neck.in_channels = _base_.model.decode_head.in_channels = [192, 384, 768, 768]
_base_.model.auxiliary_head.in_channels = 768
