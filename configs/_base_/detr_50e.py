# DETR on one map of stride 32, as PVT trains it (arXiv 2102.12122) and TNT's paper compares: 50
# epochs of 16 images, AdamW with 1e-4 for all parts, lr / 10 after 33, shorter sides of 640 to 800
# pixels. The decay is DETR's; one-dimensional weights have none, as in our other detectors.
_base_ = [
    'mmdet::detr/detr_r50_8xb2-150e_coco.py',
    './tta/detection.py',
    './hooks.py',
]

model = dict(
    # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
    data_preprocessor=dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]),
)
train_pipeline = [
    dict(type='LoadImageFromFile', backend_args=None),
    dict(type='LoadAnnotations', with_bbox=True),
    dict(type='RandomFlip', prob=0.5),
    dict(type='RandomResize', scale=[(1333, 640), (1333, 800)], keep_ratio=True),
    dict(type='PackDetInputs'),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
optim_wrapper = dict(
    constructor='CheckedOptimWrapperConstructor',
    paramwise_cfg=dict(_delete_=True, flat_decay_mult=0.0),
)
train_cfg = dict(max_epochs=50)
param_scheduler = [dict(_base_.param_scheduler[0], end=50, milestones=[33])]
auto_scale_lr = dict(enable=False, base_batch_size=16)
default_hooks = dict(checkpoint=dict(type='WholeCheckpointHook', max_keep_ckpts=3))
