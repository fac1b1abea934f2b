# PyramidTNT-S on ImageNet-1k, 82.0 % top-1 in the paper (arXiv 2201.00978). 8 GPUs x 128 images.
_base_ = [
    '_base_/models/classifier_ptnt_s.py',
    '_base_/datasets/imagenet_256.py',
    '_base_/schedules/imagenet_300e.py',
    '_base_/default_runtime_mmpretrain_ema.py',
]
