# The demo set's objects, cut out by tools/make_demo_crops.py: 948 squares of 20 to 170 pixels.
data_root = 'data/demo_cls/'
metainfo = dict(classes=('ball', 'coin', 'crate', 'cup'))
side = 64
loaders = dict(
    batch_size=32,
    num_workers=1,
    persistent_workers=True,
    collate_fn=dict(type='default_collate'),
)

train_dataloader = dict(
    **loaders,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        type='CustomDataset',
        data_root=data_root,
        data_prefix='train',
        metainfo=metainfo,
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='RandomResizedCrop', scale=side, crop_ratio_range=(0.6, 1.0)),
            dict(type='RandomFlip', prob=0.5, direction='horizontal'),
            dict(type='PackInputs'),
        ],
    ),
)
val_dataloader = dict(
    **loaders,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CustomDataset',
        data_root=data_root,
        data_prefix='val',
        metainfo=metainfo,
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='Resize', scale=(side, side)),
            dict(type='PackInputs'),
        ],
    ),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator
