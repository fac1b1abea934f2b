# Mask R-CNN (1703.06870) with a pyramid and heads of 64 channels, for a few thousand images. From
# random initialisation, a pyramid and heads with normalisation learn much sooner. The levels are
# the backbone's, 8 to 64, and the first map, doubled, for stride 4.
_base_ = '../../models/mask_rcnn_ptnt.py'

width = 64
norm_cfg = dict(type='GN', num_groups=16)
channels = [80, 160, 320, 320]
model = dict(
    data_preprocessor=dict(pad_size_divisor=64),  # the last stride of the backbone
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
    rpn_head=dict(in_channels=width, feat_channels=width),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=width),
        bbox_head=dict(
            type='ConvFCBBoxHead',
            num_shared_convs=2,
            num_shared_fcs=1,
            in_channels=width,
            conv_out_channels=width,
            fc_out_channels=256,
            norm_cfg=norm_cfg,
        ),
        mask_roi_extractor=dict(out_channels=width),
        mask_head=dict(num_convs=2, in_channels=width, conv_out_channels=width, norm_cfg=norm_cfg),
    ),
    train_cfg=dict(rcnn=dict(sampler=dict(num=128))),
)
