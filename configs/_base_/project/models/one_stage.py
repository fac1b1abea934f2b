# The common part of one-stage detectors: levels of stride 8 to 128, and for a few thousand images
# 64 channels and GroupNorm, with which a network learns much sooner from few images per step.
# ATSS and GFL for COCO have another pyramid and no such norms. A config takes `model` from only one
# base, so their heads cannot be combined with this file.

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
        pad_size_divisor=64,  # the last stride of the backbone
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
    bbox_head=dict(
        num_classes=80,
        in_channels=width,
        feat_channels=width,
        stacked_convs=4,
        norm_cfg=norm_cfg,
    ),
    test_cfg=dict(
        nms_pre=1000,
        min_bbox_size=0,
        score_thr=0.05,
        nms=dict(type='nms', iou_threshold=0.6),
        max_per_img=100,
    ),
)
