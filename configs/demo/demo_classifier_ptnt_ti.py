# A classifier with PyramidTNT-Ti on the demo set's objects, from random weights: minutes on two
# CPU cores. A demonstration, not a benchmark: small images, short schedule.
_base_ = [
    '../_base_/models/classifier_ptnt.py',
    '../_base_/project/data_classification.py',
    '../_base_/schedules/demo.py',
    '../_base_/default_runtime_mmpretrain.py',
]

model = dict(
    data_preprocessor=dict(num_classes=4),
    backbone=dict(arch='tiny', drop_path_rate=0.0, pretrain_img_size=64),
    head=dict(num_classes=4, in_channels=320),
    train_cfg=None,
)

# The objects, cut out by tools/make_demo_crops.py: 948 squares of 20 to 170 pixels.
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

auto_scale_lr = dict(base_batch_size=32)
default_hooks = dict(logger=dict(interval=10), checkpoint=dict(max_keep_ckpts=2))
randomness = dict(seed=0)
