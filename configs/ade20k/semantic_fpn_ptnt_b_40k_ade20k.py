# Semantic FPN with PyramidTNT-B, ADE20K, 8 GPUs x 4 images. Our recipe, not the paper's.
_base_ = ['../_base_/models/semantic_fpn_ptnt.py', '../_base_/ade20k_40k.py']

model = dict(
    backbone=dict(arch='base'),
    neck=[dict(part, in_channels=[256, 512, 1024, 1024]) for part in _base_.model.neck],
)
