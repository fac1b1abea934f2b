# Fine-tunes TNT-B on CIFAR-100 at 384 pixels (arXiv 2103.00112). 8 GPUs x 96 images.
_base_ = ['../_base_/datasets/cifar100_384.py', '../_base_/fine_tuning_384.py']

model = dict(
    # CIFAR's pixels are RGB already.
    data_preprocessor=dict(num_classes=100, to_rgb=False),
    backbone=dict(arch='base', init_cfg=dict(checkpoint='tnt_b')),
    head=dict(num_classes=100, in_channels=640),
)
