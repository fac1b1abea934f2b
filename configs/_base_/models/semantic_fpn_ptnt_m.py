_base_ = './semantic_fpn_ptnt_s.py'

_base_.model.backbone.arch = 'medium'
_base_.model.neck[0].in_channels = _base_.model.neck[1].in_channels = [192, 384, 768, 768]
