# Ours, as for Hire-MLP, a backbone of the same team: 40,000 iterations of 32 images, poly 0.9.
_base_ = './adamw.py'

optim_wrapper = dict(optimizer=dict(lr=2e-4, weight_decay=0.05))
train_cfg = dict(type='RepeatableIterBasedTrainLoop', max_iters=40_000, val_interval=4_000)
param_scheduler = [dict(type='PolyLR', power=0.9, eta_min=0.0, begin=0, end=40_000, by_epoch=False)]
# 8 GPUs x 4 images.
auto_scale_lr = dict(enable=False, base_batch_size=32)
