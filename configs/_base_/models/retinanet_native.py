# RetinaNet on the strides of PyramidTNT-S, 8 to 64: no transposed convolutions.
# A leaf of another size sets the arch and the channels.
_base_ = 'mmdet::_base_/models/retinanet_r50_fpn.py'

model = dict(
    # Images scaled to [-1, 1], as for the published weights.
    data_preprocessor=dict(
        mean=[127.5, 127.5, 127.5],
        std=[127.5, 127.5, 127.5],
        pad_size_divisor=64,  # the last stride that the pyramid enlarges
    ),
    backbone=dict(_delete_=True, type='PyramidTNT', arch='small', out_norms=True),
    neck=dict(
        _delete_=True,
        type='FPN',
        in_channels=[128, 256, 512, 512],
        out_channels=256,
        # Stride 128 is one more convolution.
        add_extra_convs='on_input',
        num_outs=5,
    ),
)
