# The same with EfficientNet-Lite0, from its ImageNet weights, as `ptnt new` sets it up by default.
_base_ = './demo_gfl_ptnt_ti.py'

model = dict(
    backbone=dict(
        _delete_=True,
        type='TimmFeatures',
        model='tf_efficientnet_lite0',
        frozen_norms=True,
        init_cfg=dict(type='Pretrained', checkpoint='efficientnet_lite0'),
    ),
    neck=dict(in_channels=[24, 40, 112, 320], start_level=1),
)
