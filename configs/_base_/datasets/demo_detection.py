# The demo set of tools/make_demo_data.py: a few hundred images of about 256 x 192 pixels.
_base_ = ['../project/data_detection.py', '../tta/detection.py']

data_root = 'data/demo/'
metainfo = dict(
    classes=('ball', 'coin', 'crate', 'cup'),
    palette=[(230, 159, 0), (86, 180, 233), (0, 158, 115), (204, 121, 167)],
)
loaders = dict(num_workers=1)
resize = dict(type='Resize', scale=(256, 192), keep_ratio=True)
augmentation = [resize, dict(type='RandomFlip', prob=0.5)]

train_dataloader = dict(
    **loaders,
    batch_size=8,
    dataset=dict(
        data_root=data_root,
        ann_file='annotations/instances_train.json',
        data_prefix=dict(img='train/'),
        metainfo=metainfo,
        filter_cfg=dict(filter_empty_gt=True, min_size=8),
        pipeline=[*_base_.load, *augmentation, dict(type='PackDetInputs')],
    ),
)
val_dataloader = dict(
    **loaders,
    dataset=dict(
        data_root=data_root,
        ann_file='annotations/instances_val.json',
        data_prefix=dict(img='val/'),
        metainfo=metainfo,
        # Boxes are not resized: they are drawn on the original image, as predictions are.
        pipeline=[
            _base_.load[0],
            resize,
            _base_.load[1],
            dict(type='PackDetInputs', meta_keys=_base_.meta_keys),
        ],
    ),
)
test_dataloader = val_dataloader

val_evaluator = dict(ann_file=data_root + 'annotations/instances_val.json')
test_evaluator = val_evaluator

# One scale in place of three.
tta_pipeline = [
    _base_.tta_pipeline[0],
    dict(type='TestTimeAug', transforms=[[resize], *_base_.tta_pipeline[1].transforms[1:]]),
]
