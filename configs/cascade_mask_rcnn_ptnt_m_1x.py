# Cascade Mask R-CNN with PyramidTNT-M, COCO 1x.
_base_ = ['_base_/models/cascade_ptnt.py', '_base_/instance_1x.py']

model = dict(
    backbone=dict(arch='medium'),
    neck=[
        dict(type='TransposedConvNeck', in_channels=[192, 384, 768, 768]),
        dict(type='FPN', in_channels=[192, 384, 768, 768], out_channels=256, num_outs=5),
    ],
)
