# GFL with EfficientNet-Lite0 on the demo set, from its ImageNet weights, as `ptnt new` sets it up:
# two minutes on two CPU cores. A demonstration, not a benchmark.
_base_ = [
    '../_base_/project/models/gfl.py',
    '../_base_/datasets/demo_detection.py',
    '../_base_/schedules/demo.py',
    '../_base_/default_runtime.py',
]

model = dict(
    backbone=dict(
        _delete_=True,
        type='TimmFeatures',
        model='tf_efficientnet_lite0',
        frozen_norms=True,
        init_cfg=dict(type='Pretrained', checkpoint='efficientnet_lite0'),
    ),
    neck=dict(in_channels=[24, 40, 112, 320], start_level=1),
    bbox_head=dict(num_classes=4),
)

max_epochs = 6
train_cfg = dict(max_epochs=max_epochs, val_interval=3)
optim_wrapper = dict(optimizer=dict(lr=2.8e-4))
_base_.param_scheduler[1].update(end=max_epochs, T_max=max_epochs)
train_dataloader = dict(batch_size=4)
default_hooks = dict(
    logger=dict(interval=10),
    checkpoint=dict(max_keep_ckpts=2),
    visualization=dict(score_thr=0.4),
)
randomness = dict(seed=0)
