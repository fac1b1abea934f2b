# Fine-tunes a TNT at 384 pixels: 1,000 epochs of 8 GPUs x 96 images by SGD, as DeiT's authors do
# (github.com/facebookresearch/deit/issues/45). TNT's paper has 64 epochs for CIFAR and 300 for
# others, and does not state the learning rate.
# A leaf sets the arch, its weights and the channels.
_base_ = [
    './models/classifier_tnt.py',
    './schedules/imagenet_300e_tnt.py',
    './default_runtime_mmpretrain.py',
]

model = dict(
    backbone=dict(
        # The sentence table is resized. No stochastic depth.
        pretrain_img_size=384,
        drop_path_rate=0.0,
        # One of `ptnt weights`, downloaded once; offline, the error states where to put it.
        init_cfg=dict(type='Pretrained'),
    )
)
optim_wrapper = dict(
    optimizer=dict(_delete_=True, type='SGD', lr=0.01, momentum=0.9, weight_decay=1e-4)
)
train_cfg = dict(max_epochs=1000, val_interval=10)
param_scheduler = [
    _base_.param_scheduler[0],
    dict(_base_.param_scheduler[1], T_max=995, end=1000),
]
auto_scale_lr = dict(base_batch_size=768)
