# Semantic FPN on the backbone's own strides, 8 to 64. Stride 4 is the first map, doubled.
_base_ = 'mmseg::_base_/models/fpn_r50.py'

channels = [80, 160, 320, 320]
norm_cfg = dict(type='BN')
model = dict(
    data_preprocessor=dict(
        # Images scaled to [-1, 1], as for the published weights.
        mean=[127.5, 127.5, 127.5],
        std=[127.5, 127.5, 127.5],
        size=(512, 512),
        # Pad test images that are smaller than the backbone accepts.
        test_cfg=dict(size=(8, 8)),
    ),
    pretrained=None,
    backbone=dict(_delete_=True, type='PyramidTNT', arch='tiny', out_norms=True),
    neck=[
        dict(type='FinerLevelNeck', in_channels=channels),
        dict(type='FPN', in_channels=[channels[0], *channels], out_channels=256, num_outs=5),
    ],
    decode_head=dict(
        in_channels=[256] * 5,
        in_index=[0, 1, 2, 3, 4],
        feature_strides=[4, 8, 16, 32, 64],
        norm_cfg=norm_cfg,
    ),
)
