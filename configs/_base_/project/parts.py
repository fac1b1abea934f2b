# The parts that the models of projects have in common: for a few thousand images, a pyramid and
# heads of 64 channels, and GroupNorm, with which a network learns much sooner from few images per
# step. A config takes `model` from only one base, so each model names the parts it uses.
width = 64
group_norm = dict(type='GN', num_groups=16)
channels = [80, 160, 320, 320]
levels = [8, 16, 32, 64, 128]

preprocessor = dict(
    type='mmdet.DetDataPreprocessor',
    # Images scaled to [-1, 1], as for the published weights.
    mean=[127.5, 127.5, 127.5],
    std=[127.5, 127.5, 127.5],
    bgr_to_rgb=True,
    pad_size_divisor=64,  # the last stride of the backbone
)
backbone = dict(type='PyramidTNT', arch='tiny', out_norms=True)
# Strides 8 to 128: the last is one more convolution.
pyramid = dict(
    type='FPN',
    in_channels=channels,
    out_channels=width,
    add_extra_convs='on_input',
    num_outs=5,
    norm_cfg=group_norm,
)
# Strides 4 to 64: the first is the backbone's first map, doubled.
finer_pyramid = [
    dict(type='FinerLevelNeck', in_channels=channels, norm_cfg=group_norm),
    dict(
        type='FPN',
        in_channels=[channels[0], *channels],
        out_channels=width,
        num_outs=5,
        norm_cfg=group_norm,
    ),
]
# For one-stage detectors.
head = dict(in_channels=width, feat_channels=width, norm_cfg=group_norm)
