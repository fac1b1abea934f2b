# Semantic FPN with PyramidTNT-M, ADE20K, 8 GPUs x 4 images. Our recipe, not the paper's.
_base_ = ['../_base_/models/semantic_fpn_ptnt.py', '../_base_/ade20k_40k.py']

model = dict(
    backbone=dict(arch='medium'),
    neck=[dict(part, in_channels=[192, 384, 768, 768]) for part in _base_.model.neck],
)
