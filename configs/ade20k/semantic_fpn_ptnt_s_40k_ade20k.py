# Semantic FPN with PyramidTNT-S, ADE20K, 8 GPUs x 4 images. Our recipe, not the paper's.
_base_ = ['../_base_/models/semantic_fpn_ptnt.py', '../_base_/ade20k_40k.py']
