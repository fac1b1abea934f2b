# Mask R-CNN (1703.06870) on levels of stride 4 to 64.
_base_ = ['../../models/mask_rcnn_ptnt.py', '../parts.py']

width, norm_cfg = _base_.width, _base_.group_norm
model = dict(
    data_preprocessor=dict(pad_size_divisor=64),  # the last stride of the backbone
    backbone=dict(_base_.backbone, _delete_=True),
    neck=_base_.finer_pyramid,
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
