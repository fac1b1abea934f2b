# TNT-S on ImageNet-1k, 81.5 % top-1 in the paper (arXiv 2103.00112). 8 GPUs x 128 images.
_base_ = ['../_base_/archs/tnt_s.py', '../_base_/classifier_tnt_300e_imagenet.py']

_base_.model.backbone.arch = _base_.pop('arch')
_base_.model.head.in_channels = _base_.pop('channels')
