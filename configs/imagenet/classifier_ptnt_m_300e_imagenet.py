# PyramidTNT-M on ImageNet-1k, 83.5 % top-1 in the paper (arXiv 2201.00978). 8 GPUs x 128 images.
_base_ = '../_base_/classifier_ptnt_300e_imagenet.py'

model = dict(backbone=dict(arch='medium'), head=dict(in_channels=768))
