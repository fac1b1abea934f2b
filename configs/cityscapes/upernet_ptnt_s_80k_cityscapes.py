# UPerNet with PyramidTNT-S, Cityscapes, crops of 512 x 1024, 4 GPUs x 2 images. Our recipe: the
# paper has no semantic segmentation.
_base_ = [
    '../_base_/models/upernet_ptnt.py',
    'mmseg::_base_/datasets/cityscapes.py',
    '../_base_/schedules/adamw_160k.py',
    '../_base_/default_runtime_mmseg.py',
]

model = dict(
    data_preprocessor=dict(size=(512, 1024)),
    decode_head=dict(num_classes=19),
    auxiliary_head=dict(num_classes=19),
    test_cfg=dict(crop_size=(512, 1024), stride=(341, 683)),
)

# Half of ADE20K's iterations, with mmseg's usual batch for Cityscapes.
train_cfg = dict(max_iters=80_000, val_interval=8_000)
param_scheduler = [_base_.param_scheduler[0], dict(_base_.param_scheduler[1], end=80_000)]
auto_scale_lr = dict(base_batch_size=8)
