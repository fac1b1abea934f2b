# ATSS with PyramidTNT-B, COCO 3x with multi-scale training.
_base_ = ['_base_/models/atss_ptnt.py', '_base_/detection_3x_ms.py']

model = dict(
    backbone=dict(arch='base'),
    neck=[
        dict(type='TransposedConvNeck', in_channels=[512, 1024, 1024]),
        dict(
            type='FPN',
            in_channels=[512, 1024, 1024],
            out_channels=256,
            add_extra_convs='on_output',
            num_outs=5,
        ),
    ],
)
