# Like demo_detection.py, with masks.
_base_ = './demo_detection.py'

load = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
]
train_pipeline = [*load, *_base_.augmentation, dict(type='PackDetInputs')]
pack = dict(type='PackDetInputs', meta_keys=_base_.meta_keys)
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=[load[0], _base_.resize, load[1], pack]))
test_dataloader = val_dataloader
val_evaluator = dict(metric=['bbox', 'segm'])
test_evaluator = val_evaluator
tta_model = dict(type='ptnt_mm.models.mmdet_models.InstanceTTAModel')
