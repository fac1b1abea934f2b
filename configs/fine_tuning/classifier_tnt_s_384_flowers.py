# Fine-tunes TNT-S on Oxford Flowers at 384 pixels (arXiv 2103.00112). 8 GPUs x 96 images.
_base_ = ['../_base_/datasets/flowers_384.py', '../_base_/fine_tuning_384.py']

model = dict(
    data_preprocessor=dict(num_classes=102),
    backbone=dict(arch='small', init_cfg=dict(checkpoint='tnt_s')),
    head=dict(num_classes=102, in_channels=384),
)
