_base_ = 'mmdet::_base_/models/retinanet_r50_fpn.py'

model = dict(
    # The published weights were trained on images scaled to [-1, 1], not on ImageNet's mean.
    data_preprocessor=dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]),
    backbone=dict(
        _delete_=True,
        type='PyramidTNT',
        arch='small',
        # Strides 16, 32, 64: the first neck brings them to 8, 16, 32, which is all that RetinaNet
        # takes from a backbone. A finer level would be computed and never receive a gradient.
        out_indices=(1, 2, 3),
        drop_path_rate=0.1,
    ),
    neck=[
        dict(type='TransposedConvNeck', in_channels=[256, 512, 512]),
        dict(
            type='FPN',
            in_channels=[256, 512, 512],
            out_channels=256,
            start_level=0,
            add_extra_convs='on_input',
            num_outs=5,
        ),
    ],
)
