# RetinaNet with PyramidTNT-Ti on the demo set, from random weights: minutes on two CPU cores.
# A tour of the code, not a benchmark: narrow pyramid and head, small images, short schedule.
_base_ = [
    '_base_/models/retinanet_ptnt.py',
    '_base_/datasets/demo_detection.py',
    '_base_/default_runtime.py',
]

model = dict(
    backbone=dict(arch='tiny', drop_path_rate=0.0),
    neck=[
        dict(type='TransposedConvNeck', in_channels=[160, 320, 320]),
        dict(
            type='FPN',
            in_channels=[160, 320, 320],
            out_channels=64,
            start_level=0,
            add_extra_convs='on_input',
            num_outs=5,
        ),
    ],
    bbox_head=dict(
        num_classes=4,
        in_channels=64,
        feat_channels=64,
        stacked_convs=2,
    ),
)

# 240 images in batches of 8 are 30 iterations an epoch: 600 in all.
max_epochs = 20
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=max_epochs, val_interval=4)
val_cfg = dict(type='ValLoop')
test_cfg = dict(type='TestLoop')

optim_wrapper = dict(
    type='OptimWrapper',
    optimizer=dict(type='AdamW', lr=1e-3, weight_decay=0.05),
    paramwise_cfg=dict(
        flat_decay_mult=0.0,
        custom_keys={'outer_pos': dict(decay_mult=0.0), 'inner_pos': dict(decay_mult=0.0)},
    ),
    clip_grad=dict(max_norm=5.0),
)
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=50),
    dict(
        type='CosineAnnealingLR',
        eta_min_ratio=0.01,
        begin=0,
        end=max_epochs,
        T_max=max_epochs,
        by_epoch=True,
        convert_to_iter_based=True,
    ),
]
auto_scale_lr = dict(enable=False, base_batch_size=8)

default_hooks = dict(logger=dict(interval=10), checkpoint=dict(max_keep_ckpts=2))
randomness = dict(seed=0)
