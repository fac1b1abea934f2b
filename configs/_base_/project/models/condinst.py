# CondInst (2003.05664): FCOS's boxes, and for each a small network that draws its mask from maps
# that all objects share.
_base_ = '../parts.py'

width, norm_cfg = _base_.width, _base_.group_norm
model = dict(
    type='CondInst',
    data_preprocessor=dict(_base_.preprocessor, pad_mask=True),
    backbone=_base_.backbone,
    neck=_base_.pyramid,
    bbox_head=dict(
        _base_.head,
        type='CondInstBboxHead',
        num_classes=80,
        stacked_convs=4,
        num_params=169,
        strides=_base_.levels,
        norm_on_bbox=True,
        centerness_on_reg=True,
        center_sampling=True,
        conv_bias=True,
        loss_cls=dict(type='FocalLoss', use_sigmoid=True, gamma=2.0, alpha=0.25, loss_weight=1.0),
        loss_bbox=dict(type='GIoULoss', loss_weight=1.0),
        loss_centerness=dict(type='CrossEntropyLoss', use_sigmoid=True, loss_weight=1.0),
    ),
    mask_head=dict(
        type='CondInstMaskHead',
        num_layers=3,
        feat_channels=8,
        size_of_interest=8,
        mask_out_stride=4,
        max_masks_to_train=300,
        mask_feature_head=dict(
            in_channels=width,
            feat_channels=width,
            start_level=0,
            end_level=2,
            out_channels=8,
            mask_stride=8,
            num_stacked_convs=4,
            norm_cfg=norm_cfg,
        ),
        loss_mask=dict(type='DiceLoss', use_sigmoid=True, activate=True, eps=5e-6, loss_weight=1.0),
    ),
    test_cfg=dict(
        nms_pre=1000,
        min_bbox_size=0,
        score_thr=0.05,
        nms=dict(type='nms', iou_threshold=0.6),
        max_per_img=100,
        mask_thr=0.5,
    ),
)
