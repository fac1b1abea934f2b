# A classifier of the backbone's last map.
_base_ = ['../../archs/ptnt_ti.py', '../../models/classifier_ptnt.py']

_base_.model.backbone.arch = _base_.pop('arch')
_base_.model.head.in_channels = _base_.pop('channels')[-1]
