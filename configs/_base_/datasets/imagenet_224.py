# ImageNet-1k at 224 pixels, augmented as TNT's and PyramidTNT's authors do; 8 GPUs x 128 images.
# data/imagenet holds train/ and val/ with a folder of images for each class, or with the lists
# meta/train.txt and meta/val.txt.
data_root = 'data/imagenet/'
loaders = dict(
    batch_size=128,
    num_workers=8,
    persistent_workers=True,
    pin_memory=True,
    collate_fn=dict(type='default_collate'),
)
bicubic = dict(backend='pillow', interpolation='bicubic')
# The fill value of erased and rotated-in pixels: zero after normalisation.
grey = [127.5, 127.5, 127.5]
augmentation = [
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    # timm's rand-m9-mstd0.5-inc1
    dict(
        type='RandAugment',
        policies='timm_increasing',
        num_policies=2,
        total_level=10,
        magnitude_level=9,
        magnitude_std=0.5,
        hparams=dict(pad_val=[128, 128, 128], interpolation='bicubic'),
    ),
]
erasing = dict(
    type='RandomErasing',
    erase_prob=0.25,
    mode='rand',
    min_area_ratio=0.02,
    max_area_ratio=1 / 3,
    fill_color=grey,
    fill_std=grey,
)

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='RandomResizedCrop', scale=224, **bicubic),
    *augmentation,
    erasing,
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    # The crop is 0.9 of the shorter side.
    dict(type='ResizeEdge', scale=248, edge='short', **bicubic),
    dict(type='CenterCrop', crop_size=224),
    dict(type='PackInputs'),
]
train_dataloader = dict(
    **loaders,
    # Each image three times, augmented differently, on different GPUs where there are several.
    sampler=dict(type='RepeatAugSampler', num_repeats=3),
    dataset=dict(
        type='ImageNet',
        data_root=data_root,
        split='train',
        data_prefix='train',
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    **loaders,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='ImageNet',
        data_root=data_root,
        split='val',
        data_prefix='val',
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='Accuracy', topk=(1, 5))
test_evaluator = val_evaluator
