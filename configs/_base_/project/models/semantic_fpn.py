# Semantic FPN (1901.02446) with a pyramid and a head of 64 channels, for a few thousand images. The
# normalisation is GroupNorm, which needs no large batches. The levels are the backbone's, 8 to 64,
# and the first map, doubled, for stride 4.
_base_ = 'mmseg::_base_/models/fpn_r50.py'

width = 64
norm_cfg = dict(type='GN', num_groups=16)
channels = [80, 160, 320, 320]
model = dict(
    data_preprocessor=dict(
        # Images scaled to [-1, 1], as for the published weights.
        mean=[127.5, 127.5, 127.5],
        std=[127.5, 127.5, 127.5],
        size=(512, 512),
        # Test images are padded to multiples of the last stride: otherwise the coarsest map covers
        # more than the image, and resizing it shifts the predictions.
        test_cfg=dict(size_divisor=64),
    ),
    pretrained=None,
    backbone=dict(_delete_=True, type='PyramidTNT', arch='tiny', out_norms=True),
    neck=[
        dict(type='FinerLevelNeck', in_channels=channels, norm_cfg=norm_cfg),
        dict(
            type='FPN',
            in_channels=[channels[0], *channels],
            out_channels=width,
            num_outs=5,
            norm_cfg=norm_cfg,
        ),
    ],
    decode_head=dict(
        in_channels=[width] * 5,
        in_index=[0, 1, 2, 3, 4],
        feature_strides=[4, 8, 16, 32, 64],
        channels=width,
        norm_cfg=norm_cfg,
    ),
)
