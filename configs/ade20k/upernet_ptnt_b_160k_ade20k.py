# UPerNet with PyramidTNT-B, ADE20K, 8 GPUs x 2 images. Our recipe, not the paper's.
_base_ = ['../_base_/models/upernet_ptnt.py', '../_base_/ade20k_160k.py']

model = dict(
    backbone=dict(arch='base'),
    neck=dict(in_channels=[256, 512, 1024, 1024]),
    decode_head=dict(in_channels=[256, 512, 1024, 1024]),
    auxiliary_head=dict(in_channels=1024),
)
