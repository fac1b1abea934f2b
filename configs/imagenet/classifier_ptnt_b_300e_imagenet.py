# PyramidTNT-B on ImageNet-1k, 84.1 % top-1 in the paper (arXiv 2201.00978). 8 GPUs x 128 images.
_base_ = ['../_base_/archs/ptnt_b.py', '../_base_/classifier_ptnt_300e_imagenet.py']

_base_.model.backbone.arch = _base_.pop('arch')
_base_.model.head.in_channels = _base_.pop('channels')[-1]
