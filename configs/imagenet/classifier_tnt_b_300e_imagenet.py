# TNT-B on ImageNet-1k, 82.9 % top-1 in the paper (arXiv 2103.00112). 8 GPUs x 128 images.
_base_ = '../_base_/classifier_tnt_300e_imagenet.py'

model = dict(backbone=dict(arch='base'), head=dict(in_channels=640))
