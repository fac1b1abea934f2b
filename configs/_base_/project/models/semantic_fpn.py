# Semantic FPN (1901.02446) on levels of stride 4 to 64.
_base_ = ['../../models/semantic_fpn_ptnt.py', '../parts.py']

width, norm_cfg = _base_.width, _base_.group_norm
model = dict(
    backbone=dict(_base_.backbone, _delete_=True),
    neck=_base_.finer_pyramid,
    decode_head=dict(
        in_channels=[width] * 5,
        in_index=[0, 1, 2, 3, 4],
        feature_strides=[4, 8, 16, 32, 64],
        channels=width,
        norm_cfg=norm_cfg,
    ),
    test_cfg=dict(_delete_=True, mode='whole'),
)
