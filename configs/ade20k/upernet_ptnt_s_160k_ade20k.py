# UPerNet with PyramidTNT-S, ADE20K, 8 GPUs x 2 images. Our recipe, not the paper's.
_base_ = ['../_base_/models/upernet_ptnt.py', '../_base_/ade20k_160k.py']
