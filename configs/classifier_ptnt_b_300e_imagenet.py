# PyramidTNT-B on ImageNet-1k, 84.1 % top-1 in the paper (arXiv 2201.00978). 8 GPUs x 128 images.
_base_ = [
    '_base_/models/classifier_ptnt_b.py',
    '_base_/datasets/imagenet_256.py',
    '_base_/schedules/imagenet_300e.py',
    '_base_/default_runtime_mmpretrain_ema.py',
]
