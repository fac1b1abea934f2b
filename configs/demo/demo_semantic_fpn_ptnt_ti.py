# Semantic FPN with PyramidTNT-Ti on the demo set, from random weights: minutes on two CPU cores.
# A demonstration, not a benchmark: narrow heads, small images, short schedule.
_base_ = [
    '../_base_/models/semantic_fpn_ptnt.py',
    '../_base_/schedules/adamw_40k.py',
    '../_base_/default_runtime_mmseg.py',
]

width = 64
# With a single process, there is nothing to synchronise.
norm_cfg = dict(type='BN')
model = dict(
    data_preprocessor=dict(size=(192, 192)),
    backbone=dict(arch='tiny', drop_path_rate=0.0),
    neck=[
        dict(type='TransposedConvNeck', in_channels=[80, 160, 320, 320]),
        dict(type='FPN', in_channels=[80, 160, 320, 320], out_channels=width, num_outs=4),
    ],
    decode_head=dict(in_channels=[width] * 4, channels=width, num_classes=5, norm_cfg=norm_cfg),
    test_cfg=dict(crop_size=(192, 192), stride=(128, 128)),
)

# The demo set of tools/make_demo_data.py: a few hundred images of about 256 x 192 pixels.
data_root = 'data/demo/'
metainfo = dict(
    classes=('background', 'ball', 'coin', 'crate', 'cup'),
    palette=[(0, 0, 0), (230, 159, 0), (86, 180, 233), (0, 158, 115), (204, 121, 167)],
)
loaders = dict(num_workers=1, persistent_workers=True)
dataset = dict(
    type='BaseSegDataset',
    data_root=data_root,
    metainfo=metainfo,
    img_suffix='.jpg',
    seg_map_suffix='.png',
)
load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
resize = dict(type='Resize', scale=(256, 192), keep_ratio=True)
# mmseg's inference_model looks for it under this name. Masks are not resized: they are the truth.
test_pipeline = [load[0], resize, load[1], dict(type='PackSegInputs')]

train_dataloader = dict(
    **loaders,
    batch_size=8,
    sampler=dict(type='InfiniteSampler', shuffle=True),
    dataset=dict(
        **dataset,
        data_prefix=dict(img_path='train', seg_map_path='semantic/train'),
        pipeline=[
            *load,
            resize,
            dict(type='RandomCrop', crop_size=(192, 192), cat_max_ratio=0.75),
            dict(type='RandomFlip', prob=0.5),
            dict(type='PackSegInputs'),
        ],
    ),
)
val_dataloader = dict(
    **loaders,
    batch_size=1,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        **dataset,
        data_prefix=dict(img_path='val', seg_map_path='semantic/val'),
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator

tta_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(
        type='TestTimeAug',
        transforms=[
            [dict(type='Resize', scale_factor=factor, keep_ratio=True) for factor in (1.0, 1.5)],
            [dict(type='RandomFlip', prob=1.0), dict(type='RandomFlip', prob=0.0)],
            [dict(type='LoadAnnotations')],
            [dict(type='PackSegInputs')],
        ],
    ),
]

# 16 epochs of 240 images, in batches of 8.
max_iters = 480
train_cfg = dict(max_iters=max_iters, val_interval=120)
optim_wrapper = dict(optimizer=dict(lr=1e-3), clip_grad=dict(max_norm=5.0))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=50),
    dict(type='PolyLR', power=0.9, eta_min=0.0, begin=50, end=max_iters, by_epoch=False),
]
auto_scale_lr = dict(base_batch_size=8)

default_hooks = dict(logger=dict(interval=10), checkpoint=dict(interval=120, max_keep_ckpts=2))
randomness = dict(seed=0)
