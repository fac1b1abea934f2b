# PyramidTNT-B on ImageNet-1k, 84.1 % top-1 in the paper (arXiv 2201.00978). 8 GPUs x 128 images.
_base_ = '../_base_/classifier_ptnt_300e_imagenet.py'

model = dict(backbone=dict(arch='base'), head=dict(in_channels=1024))
