# UPerNet with PyramidTNT-Ti, ADE20K, 8 GPUs x 2 images. Our recipe, not the paper's.
_base_ = ['../_base_/models/upernet_ptnt.py', '../_base_/ade20k_160k.py']

model = dict(
    backbone=dict(arch='tiny'),
    neck=dict(in_channels=[80, 160, 320, 320]),
    decode_head=dict(in_channels=[80, 160, 320, 320]),
    auxiliary_head=dict(in_channels=320),
)
