# Like demo_detection.py, with masks.
_base_ = './demo_detection.py'

_base_.train_dataloader.dataset.pipeline[1].with_mask = True
_base_.val_dataloader.dataset.pipeline[2].with_mask = True
_base_.test_dataloader.dataset.pipeline[2].with_mask = True
val_evaluator = dict(metric=['bbox', 'segm'])
test_evaluator = val_evaluator
tta_model = dict(type='ptnt_mm.models.mmdet_models.InstanceTTAModel')
