# 240 images in batches of 4 are 60 iterations per epoch: 720 in all.
_base_ = './adamw_1x.py'

max_epochs = 12
train_cfg = dict(max_epochs=max_epochs, val_interval=4)
optim_wrapper = dict(optimizer=dict(lr=1e-3), clip_grad=dict(max_norm=5.0))
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
auto_scale_lr = dict(base_batch_size=4)
