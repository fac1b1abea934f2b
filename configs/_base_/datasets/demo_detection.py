# The demo set of tools/make_demo_data.py: a few hundred images of about 256 x 192 pixels.
_base_ = '../tta/detection.py'

data_root = 'data/demo/'
metainfo = dict(
    classes=('ball', 'coin', 'crate', 'cup'),
    palette=[(230, 159, 0), (86, 180, 233), (0, 158, 115), (204, 121, 167)],
)
img_scale = (256, 192)
loaders = dict(num_workers=1, persistent_workers=True)

load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True)]
meta_keys = ('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor')
resize = dict(type='Resize', scale=img_scale, keep_ratio=True)

train_dataloader = dict(
    **loaders,
    batch_size=8,
    sampler=dict(type='DefaultSampler', shuffle=True),
    batch_sampler=dict(type='AspectRatioBatchSampler'),
    dataset=dict(
        type='CocoDataset',
        data_root=data_root,
        ann_file='annotations/instances_train.json',
        data_prefix=dict(img='train/'),
        metainfo=metainfo,
        filter_cfg=dict(filter_empty_gt=True, min_size=8),
        pipeline=[*load, resize, dict(type='RandomFlip', prob=0.5), dict(type='PackDetInputs')],
    ),
)
val_dataloader = dict(
    **loaders,
    batch_size=1,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CocoDataset',
        data_root=data_root,
        ann_file='annotations/instances_val.json',
        data_prefix=dict(img='val/'),
        metainfo=metainfo,
        test_mode=True,
        # Boxes are not resized: they are drawn on the original image, as predictions are.
        pipeline=[load[0], resize, load[1], dict(type='PackDetInputs', meta_keys=meta_keys)],
    ),
)
test_dataloader = val_dataloader

val_evaluator = dict(
    type='CocoMetric', ann_file=data_root + 'annotations/instances_val.json', metric='bbox'
)
test_evaluator = val_evaluator

# One scale in place of three.
_base_.tta_pipeline[1].transforms[0] = [resize]
