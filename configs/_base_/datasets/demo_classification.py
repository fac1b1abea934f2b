# The demo set's objects, cut out by tools/make_demo_crops.py: 948 squares of 20 to 170 pixels.
_base_ = './new_classification.py'

data_root = 'data/demo_cls/'
metainfo = dict(classes=('ball', 'coin', 'crate', 'cup'))
side = 64
loaders = dict(num_workers=1)

train_dataloader = dict(
    **loaders,
    dataset=dict(
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
    dataset=dict(
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
