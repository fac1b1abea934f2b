# PyramidTNT-S on ImageNet-1k, 82.0 % top-1 in the paper (arXiv 2201.00978). 8 GPUs x 128 images.
_base_ = '../_base_/classifier_ptnt_300e_imagenet.py'
