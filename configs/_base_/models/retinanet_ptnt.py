# RetinaNet with PyramidTNT-S on strides 8 to 128. A leaf of another size sets the arch and the
# channels.
_base_ = 'mmdet::_base_/models/retinanet_r50_fpn.py'

model = dict(
    # The published weights expect images scaled to [-1, 1], not normalised by ImageNet's mean.
    data_preprocessor=dict(mean=[127.5, 127.5, 127.5], std=[127.5, 127.5, 127.5]),
    backbone=dict(
        _delete_=True,
        type='PyramidTNT',
        arch='small',
        # Strides 16, 32, 64. The first neck turns them into 8, 16, 32, the only levels that
        # RetinaNet uses. A finer level would be computed for nothing and get no gradient.
        out_indices=(1, 2, 3),
        drop_path_rate=0.1,
    ),
    neck=[
        dict(type='TransposedConvNeck', in_channels=[256, 512, 512]),
        dict(
            type='FPN',
            in_channels=[256, 512, 512],
            out_channels=256,
            add_extra_convs='on_input',
            num_outs=5,
        ),
    ],
)
