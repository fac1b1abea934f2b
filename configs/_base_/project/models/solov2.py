# SOLOv2 (2003.10152): no boxes; the cell of a grid that an object's centre lies in draws its mask.
_base_ = '../parts.py'

width, norm_cfg = _base_.width, _base_.group_norm
model = dict(
    type='SOLOv2',
    data_preprocessor=dict(_base_.preprocessor, pad_mask=True),
    backbone=_base_.backbone,
    neck=_base_.finer_pyramid,
    mask_head=dict(
        type='SOLOV2Head',
        num_classes=80,
        in_channels=width,
        feat_channels=2 * width,
        stacked_convs=4,
        norm_cfg=norm_cfg,
        strides=[8, 8, 16, 32, 32],
        scale_ranges=((1, 96), (48, 192), (96, 384), (192, 768), (384, 2048)),
        num_grids=[40, 36, 24, 16, 12],
        mask_feature_head=dict(
            feat_channels=width,
            start_level=0,
            end_level=3,
            out_channels=width,
            mask_stride=4,
            norm_cfg=norm_cfg,
        ),
        loss_mask=dict(type='DiceLoss', use_sigmoid=True, loss_weight=3.0),
        loss_cls=dict(type='FocalLoss', use_sigmoid=True, gamma=2.0, alpha=0.25, loss_weight=1.0),
    ),
    test_cfg=dict(
        nms_pre=500,
        score_thr=0.1,
        mask_thr=0.5,
        filter_thr=0.05,
        kernel='gaussian',
        sigma=2.0,
        max_per_img=100,
    ),
)
