# UPerNet with PyramidTNT-M, ADE20K, 8 GPUs x 2 images. Our recipe, not the paper's.
_base_ = ['../_base_/models/upernet_ptnt.py', '../_base_/ade20k_160k.py']

model = dict(
    backbone=dict(arch='medium'),
    neck=dict(in_channels=[192, 384, 768, 768]),
    decode_head=dict(in_channels=[192, 384, 768, 768]),
    auxiliary_head=dict(in_channels=768),
)
