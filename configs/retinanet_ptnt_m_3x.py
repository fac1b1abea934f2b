# RetinaNet with PyramidTNT-M, COCO 3x.
_base_ = ['_base_/models/retinanet_ptnt.py', '_base_/detection_3x.py']

model = dict(
    backbone=dict(arch='medium', drop_path_rate=0.2),
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
