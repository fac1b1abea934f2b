# GFL with PyramidTNT-Ti on the demo set, from the weights that come with this package, as
# `ptnt new --backbone ptnt_ti` sets it up: minutes on two CPU cores. A demonstration, no benchmark.
_base_ = [
    '../_base_/project/models/gfl.py',
    '../_base_/datasets/demo_detection.py',
    '../_base_/schedules/demo.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        # Four images are too few for the statistics of BatchNorm.
        norm_cfg=dict(type='BN', requires_grad=False),
        norm_eval=True,
        init_cfg=dict(type='Pretrained', checkpoint='ptnt_ti_distilled'),
    ),
    bbox_head=dict(num_classes=4),
)

max_epochs = 6
train_cfg = dict(max_epochs=max_epochs, val_interval=3)
optim_wrapper = dict(
    optimizer=dict(lr=1.4e-3),
    paramwise_cfg=dict(custom_keys=dict(backbone=dict(lr_mult=0.2))),  # neck and head are new
)
param_scheduler = [
    _base_.param_scheduler[0],
    dict(_base_.param_scheduler[1], end=max_epochs, T_max=max_epochs),
]
train_dataloader = dict(batch_size=4)
default_hooks = dict(
    logger=dict(interval=10),
    checkpoint=dict(max_keep_ckpts=2),
    visualization=dict(score_thr=0.4),
)
randomness = dict(seed=0)
