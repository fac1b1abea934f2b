# DETR with TNT-S and its ImageNet weights, 50 epochs; 38.2 AP in the paper (arXiv 2103.00112,
# table 10). 8 GPUs x 2 images.
_base_ = ['_base_/archs/tnt_s_pretrained.py', '_base_/detr_50e.py']

channels = _base_.pop('channels')
model = dict(
    data_preprocessor=_base_.pop('scaling'),
    backbone=dict(_delete_=True, **_base_.pop('backbone')),
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
