# Levels of stride 8 to 128 for a few thousand images: 64 channels, and GroupNorm, with which a
# network learns much sooner from few images per step.
width = 64
norm_cfg = dict(type='GN', num_groups=16)
levels = [8, 16, 32, 64, 128]

model = dict(
    data_preprocessor=dict(
        type='mmdet.DetDataPreprocessor',
        # Images scaled to [-1, 1], as for the published weights.
        mean=[127.5, 127.5, 127.5],
        std=[127.5, 127.5, 127.5],
        bgr_to_rgb=True,
        pad_size_divisor=32,
    ),
    backbone=dict(type='PyramidTNT', arch='tiny', out_norms=True),
    neck=dict(
        type='FPN',
        in_channels=[80, 160, 320, 320],
        out_channels=width,
        # Stride 128 is one more convolution.
        add_extra_convs='on_input',
        num_outs=len(levels),
        norm_cfg=norm_cfg,
    ),
)
