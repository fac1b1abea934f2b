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
