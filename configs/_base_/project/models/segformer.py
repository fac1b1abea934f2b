# SegFormer's head (2105.15203): the backbone's maps, each reduced to a few channels and enlarged to
# the finest.
_base_ = './semantic_fpn.py'

width, norm_cfg = _base_.width, _base_.group_norm
model = dict(
    neck=None,
    decode_head=dict(
        _delete_=True,
        type='SegformerHead',
        in_channels=_base_.channels,
        in_index=[0, 1, 2, 3],
        channels=width,
        dropout_ratio=0.1,
        num_classes=19,
        norm_cfg=norm_cfg,
        align_corners=False,
        loss_decode=dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0),
    ),
)
