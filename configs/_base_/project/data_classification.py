# Images with one class each, in lists that `ptnt new` wrote; its config names files and sizes.
loaders = dict(
    batch_size=32,
    num_workers=2,
    persistent_workers=True,
    collate_fn=dict(type='default_collate'),
)

train_dataloader = dict(
    **loaders,
    sampler=dict(type='DefaultSampler', shuffle=True),
    dataset=dict(
        type='CustomDataset',
        pipeline=[dict(type='LoadImageFromFile'), dict(type='PackInputs')],
    ),
)
val_dataloader = dict(
    **loaders,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CustomDataset',
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='ResizeEdge', scale=256, edge='short'),
            dict(type='CenterCrop', crop_size=224),
            dict(type='PackInputs'),
        ],
    ),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='Accuracy', topk=(1,))
test_evaluator = val_evaluator
