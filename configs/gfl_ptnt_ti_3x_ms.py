# GFL with PyramidTNT-Ti, COCO 3x with multi-scale training.
_base_ = ['_base_/models/gfl_ptnt.py', '_base_/detection_3x_ms.py']

model = dict(
    backbone=dict(arch='tiny'),
    neck=[
        dict(type='TransposedConvNeck', in_channels=[160, 320, 320]),
        dict(
            type='FPN',
            in_channels=[160, 320, 320],
            out_channels=256,
            add_extra_convs='on_output',
            num_outs=5,
        ),
    ],
)
