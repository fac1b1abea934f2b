# Class masks that `ptnt new` wrote; its config names the files, classes and sizes.
loaders = dict(num_workers=2, persistent_workers=True)
load = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations')]
resize = dict(type='Resize', scale=(2048, 512), keep_ratio=True)
# A mask is named like its image plus .png: a.jpg.png.
dataset = dict(
    type='BaseSegDataset',
    img_suffix='',
    seg_map_suffix='.png',
)
test_pipeline = [load[0], resize, load[1], dict(type='PackSegInputs')]

train_dataloader = dict(
    **loaders,
    batch_size=2,
    sampler=dict(type='DefaultSampler', shuffle=True),
    drop_last=True,  # BatchNorm cannot train on one image
    dataset=dict(**dataset, pipeline=[*load, dict(type='PackSegInputs')]),
)
val_dataloader = dict(
    **loaders,
    batch_size=1,
    sampler=dict(type='DefaultSampler', shuffle=False),
    dataset=dict(**dataset, pipeline=test_pipeline),
)
test_dataloader = val_dataloader

val_evaluator = dict(type='IoUMetric', iou_metrics=['mIoU'])
test_evaluator = val_evaluator
