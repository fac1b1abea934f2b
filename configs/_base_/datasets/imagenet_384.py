# ImageNet-1k at 384 pixels, 8 GPUs x 96 images.
_base_ = './imagenet_224.py'

# Without erasing, as DeiT fine-tunes.
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResizedCrop', scale=384, **_base_.bicubic),
    *_base_.augmentation,
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='ResizeEdge', scale=426, edge='short', **_base_.bicubic),
    dict(type='CenterCrop', crop_size=384),
    dict(type='PackInputs'),
]
train_dataloader = dict(batch_size=96, dataset=dict(pipeline=train_pipeline))
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
