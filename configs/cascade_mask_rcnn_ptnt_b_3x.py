# Cascade Mask R-CNN with PyramidTNT-B, COCO 3x.
_base_ = ['_base_/models/cascade_ptnt.py', '_base_/instance_3x.py']

model = dict(
    backbone=dict(arch='base', drop_path_rate=0.2),
    neck=[
        dict(type='TransposedConvNeck', in_channels=[256, 512, 1024, 1024]),
        dict(type='FPN', in_channels=[256, 512, 1024, 1024], out_channels=256, num_outs=5),
    ],
)
