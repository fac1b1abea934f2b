# 300 epochs of 8 GPUs x 128 images, as PyramidTNT's authors train: a warm-up of 20, then a cosine.
_base_ = './adamw.py'

optim_wrapper = dict(optimizer=dict(lr=1e-3))
train_cfg = dict(type='EpochBasedTrainLoop', max_epochs=300, val_interval=1)
param_scheduler = [
    # From 1e-6.
    dict(type='LinearLR', start_factor=1e-3, begin=0, end=20, convert_to_iter_based=True),
    dict(
        type='CosineAnnealingLR',
        eta_min=1e-5,
        T_max=280,
        begin=20,
        end=300,
        convert_to_iter_based=True,
    ),
]
auto_scale_lr = dict(enable=False, base_batch_size=1024)
