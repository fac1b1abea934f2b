# DETR with TNT-S and its ImageNet weights, 50 epochs; 38.2 AP in the paper (arXiv 2103.00112,
# table 10). 8 GPUs x 2 images.
_base_ = '_base_/detr_50e.py'

channels = 384
model = dict(
    backbone=dict(
        _delete_=True,
        type='TNT',
        arch='small',
        drop_path_rate=0.1,
        # One of `ptnt weights`, downloaded once; offline, the error states where to put it.
        init_cfg=dict(type='Pretrained', checkpoint='tnt_s'),
    ),
    # An average of 2 x 2 places brings the map to stride 32.
    neck=[
        dict(type='AveragePoolNeck', in_channels=channels),
        dict(
            type='ChannelMapper',
            in_channels=[channels],
            out_channels=256,
            kernel_size=1,
            act_cfg=None,
            norm_cfg=None,
            num_outs=1,
        ),
    ],
)
