# AdamW with a warm-up and a cosine, counted in epochs; the config of `ptnt new` sets the numbers.
_base_ = '../schedules/adamw.py'

train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=12, val_interval=1)
optim_wrapper = dict(clip_grad=dict(max_norm=5.0))
param_scheduler = [
    dict(type='LinearLR', start_factor=0.01, by_epoch=False, begin=0, end=50),
    dict(
        type='CosineAnnealingLR',
        eta_min_ratio=0.01,
        begin=0,
        end=12,
        T_max=12,
        by_epoch=True,
        convert_to_iter_based=True,
    ),
]
auto_scale_lr = dict(enable=False, base_batch_size=16)
