# Semantic FPN with PyramidTNT-Ti, ADE20K, 8 GPUs x 4 images. Our recipe, not the paper's.
_base_ = ['../_base_/models/semantic_fpn_ptnt.py', '../_base_/ade20k_40k.py']

model = dict(
    backbone=dict(arch='tiny'),
    neck=[dict(part, in_channels=[80, 160, 320, 320]) for part in _base_.model.neck],
)
