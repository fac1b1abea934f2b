# PyramidTNT-Ti on ImageNet-1k, 75.2 % top-1 in the paper (arXiv 2201.00978). 8 GPUs x 128 images.
_base_ = [
    '../_base_/models/classifier_ptnt.py',
    '../_base_/datasets/imagenet_192.py',
    '../_base_/schedules/imagenet_300e.py',
    '../_base_/default_runtime_mmpretrain_ema.py',
]

model = dict(backbone=dict(arch='tiny'), head=dict(in_channels=320))
