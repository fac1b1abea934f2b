# CPVT on ImageNet-1k, as its authors train: 5e-4 for 512 images, in batches of 8 GPUs x 256. The
# warm-up is DeiT's. A leaf sets the arch and the channels.
_base_ = [
    './models/classifier_ptnt.py',
    './datasets/imagenet_224.py',
    './schedules/imagenet_300e_tnt.py',
    './default_runtime_mmpretrain_ema.py',
]

model = dict(
    backbone=dict(_delete_=True, type='CPVT', out_type='cls_token', drop_path_rate=0.1),
    neck=None,
)
train_dataloader = dict(batch_size=256)
optim_wrapper = dict(optimizer=dict(lr=2e-3))
param_scheduler = [
    dict(_base_.param_scheduler[0], start_factor=5e-4),
    _base_.param_scheduler[1],
]
auto_scale_lr = dict(base_batch_size=2048)
