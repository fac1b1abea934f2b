# RetinaNet with PyramidTNT-Ti, COCO 1x.
_base_ = ['_base_/models/retinanet_ptnt.py', '_base_/detection_1x.py']

model = dict(
    backbone=dict(arch='tiny'),
    neck=[
        dict(type='TransposedConvNeck', in_channels=[160, 320, 320]),
        dict(
            type='FPN',
            in_channels=[160, 320, 320],
            out_channels=256,
            add_extra_convs='on_input',
            num_outs=5,
        ),
    ],
)
