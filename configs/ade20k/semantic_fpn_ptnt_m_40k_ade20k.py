# Semantic FPN with PyramidTNT-M, ADE20K, 8 GPUs x 4 images. Our recipe, not the paper's.
_base_ = ['../_base_/models/semantic_fpn_ptnt.py', '../_base_/ade20k_40k.py']

model = dict(
    backbone=dict(arch='medium'),
    neck=[
        dict(type='TransposedConvNeck', in_channels=[192, 384, 768, 768]),
        dict(type='FPN', in_channels=[192, 384, 768, 768], out_channels=256, num_outs=4),
    ],
)
