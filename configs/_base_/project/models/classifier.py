# A classifier of the backbone's last map.
_base_ = '../../models/classifier_ptnt.py'

model = dict(backbone=dict(arch='tiny'), head=dict(in_channels=320))
