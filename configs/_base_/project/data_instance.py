# As data_detection.py, with a mask of each object.
_base_ = './data_detection.py'

load = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
]
train_dataloader = dict(dataset=dict(pipeline=[*load, dict(type='PackDetInputs')]))
# The best checkpoint is the one with the best first metric.
val_evaluator = dict(metric=['segm', 'bbox'])
test_evaluator = val_evaluator
