# CPVT-Ti on ImageNet-1k (arXiv 2102.10882). 8 GPUs x 256 images.
_base_ = '../_base_/classifier_cpvt_300e_imagenet.py'

model = dict(backbone=dict(arch='tiny'), head=dict(in_channels=192))
