# As detection.py; the masks go with their boxes.
_base_ = './detection.py'

tta_model = dict(type='ptnt_mm.models.instance_tta.InstanceTTAModel')
