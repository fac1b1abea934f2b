# Like detection.py, with a model that also merges masks.
_base_ = './detection.py'

tta_model = dict(type='ptnt_mm.models.mmdet_models.InstanceTTAModel')
