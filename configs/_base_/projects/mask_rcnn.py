# As mask_rcnn_native.py with a pyramid and heads of 64 channels, for a few thousand images. From
# random initialisation, a pyramid and heads with normalisation learn much sooner.
_base_ = '../models/mask_rcnn_native.py'

width = 64
norm_cfg = dict(type='GN', num_groups=16)
_base_.model.neck[0].update(norm_cfg=norm_cfg)
_base_.model.neck[1].update(out_channels=width, norm_cfg=norm_cfg)
model = dict(
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
