# RetinaNet with PyramidTNT-M, COCO 1x.
_base_ = ['_base_/models/retinanet_ptnt.py', '_base_/detection_1x.py']

model = dict(
    backbone=dict(arch='medium'),
    neck=[
        dict(type='TransposedConvNeck', in_channels=[384, 768, 768]),
        dict(
            type='FPN',
            in_channels=[384, 768, 768],
            out_channels=256,
            add_extra_convs='on_input',
            num_outs=5,
        ),
    ],
)
