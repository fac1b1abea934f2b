# Boxes that `ptnt new` wrote in COCO's format; its config names the files, classes and sizes.
loaders = dict(num_workers=2, persistent_workers=True)
load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True)]
resize = dict(type='Resize', scale=(1333, 800), keep_ratio=True)
meta_keys = ('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor')

train_dataloader = dict(
    **loaders,
    batch_size=2,
    sampler=dict(type='DefaultSampler', shuffle=True),
    batch_sampler=dict(type='AspectRatioBatchSampler'),
    # Images without objects are kept: background helps training, too.
    dataset=dict(type='CocoDataset', pipeline=[*load, dict(type='PackDetInputs')]),
)
val_dataloader = dict(
    **loaders,
    batch_size=1,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(
        type='CocoDataset',
        test_mode=True,
        pipeline=[load[0], resize, load[1], dict(type='PackDetInputs', meta_keys=meta_keys)],
    ),
)
test_dataloader = val_dataloader

# CocoMetric, without its limit of 100 detections of a class in an image.
val_evaluator = dict(type='ptnt_mm.workbench.engine.mmdet_metrics.DenseCocoMetric', metric='bbox')
test_evaluator = val_evaluator
