# COCO with multi-scale training.
_base_ = ['mmdet::_base_/datasets/coco_detection.py', './multi_scale.py']

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='RandomFlip', prob=0.5),
    _base_.multi_scale,
    dict(type='PackDetInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
