# Cascade R-CNN (1712.00726) on levels of stride 8 to 128: boxes from region proposals, corrected
# three times.
_base_ = ['mmdet::_base_/models/cascade-rcnn_r50_fpn.py', '../parts.py']

width, norm_cfg, levels = _base_.width, _base_.group_norm, _base_.levels
model = dict(
    data_preprocessor=_base_.preprocessor,
    backbone=dict(_base_.backbone, _delete_=True),
    neck=_base_.pyramid,
    rpn_head=dict(
        in_channels=width,
        feat_channels=width,
        anchor_generator=dict(scales=[4], strides=levels),
    ),
    roi_head=dict(
        bbox_roi_extractor=dict(out_channels=width, featmap_strides=levels[:4]),
        bbox_head=[
            dict(
                type='ConvFCBBoxHead',
                num_classes=80,
                num_shared_convs=2,
                num_shared_fcs=1,
                in_channels=width,
                conv_out_channels=width,
                fc_out_channels=256,
                norm_cfg=norm_cfg,
                reg_class_agnostic=True,
                bbox_coder=dict(
                    type='DeltaXYWHBBoxCoder',
                    target_means=[0.0, 0.0, 0.0, 0.0],
                    target_stds=[0.1 / stage, 0.1 / stage, 0.2 / stage, 0.2 / stage],
                ),
                loss_cls=dict(type='CrossEntropyLoss', use_sigmoid=False, loss_weight=1.0),
                loss_bbox=dict(type='SmoothL1Loss', beta=1.0, loss_weight=1.0),
            )
            for stage in (1, 2, 3)
        ],
    ),
    train_cfg=dict(
        rcnn=[
            dict(stage, sampler=dict(stage.sampler, num=128))
            for stage in _base_.model.train_cfg.rcnn
        ],
    ),
)
