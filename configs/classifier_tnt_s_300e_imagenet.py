# TNT-S on ImageNet-1k, 81.5 % top-1 in the paper (arXiv 2103.00112). 8 GPUs x 128 images.
_base_ = [
    '_base_/models/classifier_tnt_s.py',
    '_base_/datasets/imagenet_224.py',
    '_base_/schedules/imagenet_300e_tnt.py',
    '_base_/default_runtime_mmpretrain_ema.py',
]
