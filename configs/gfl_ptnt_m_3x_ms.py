# GFL with PyramidTNT-M, COCO 3x with multi-scale training.
_base_ = ['_base_/models/gfl_ptnt.py', '_base_/detection_3x_ms.py']

model = dict(
    backbone=dict(arch='medium'),
    neck=[
        dict(type='TransposedConvNeck', in_channels=[384, 768, 768]),
        dict(
            type='FPN',
            in_channels=[384, 768, 768],
            out_channels=256,
            add_extra_convs='on_output',
            num_outs=5,
        ),
    ],
)
