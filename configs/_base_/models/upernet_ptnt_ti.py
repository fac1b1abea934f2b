_base_ = './upernet_ptnt_s.py'

_base_.model.backbone.arch = 'tiny'
_base_.model.neck.in_channels = _base_.model.decode_head.in_channels = [80, 160, 320, 320]
_base_.model.auxiliary_head.in_channels = 320
