# Semantic FPN with PyramidTNT-Ti on the demo set, from random weights: minutes on two CPU cores.
# A demonstration, not a benchmark: narrow heads, small images, short schedule.
_base_ = [
    '_base_/models/semantic_fpn_ptnt_ti.py',
    '_base_/datasets/demo_segmentation.py',
    '_base_/schedules/adamw_40k.py',
    '_base_/default_runtime_mmseg.py',
]

width = 64
# With a single process, there is nothing to synchronise.
norm_cfg = dict(type='BN')
_base_.model.neck[1].out_channels = width
model = dict(
    data_preprocessor=dict(size=(192, 192)),
    backbone=dict(drop_path_rate=0.0),
    decode_head=dict(in_channels=[width] * 4, channels=width, num_classes=5, norm_cfg=norm_cfg),
    test_cfg=dict(crop_size=(192, 192), stride=(128, 128)),
)

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
