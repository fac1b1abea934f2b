# COCO with masks and multi-scale training.
_base_ = ['mmdet::_base_/datasets/coco_instance.py', './multi_scale.py']

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations', with_bbox=True, with_mask=True),
    dict(type='RandomFlip', prob=0.5),
    _base_.multi_scale,
    dict(type='PackDetInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
