# RetinaNet (1708.02002): nine anchors per place, focal loss.
_base_ = './one_stage.py'

model = dict(
    type='RetinaNet',
    bbox_head=dict(
        type='RetinaHead',
        anchor_generator=dict(
            type='AnchorGenerator',
            octave_base_scale=4,
            scales_per_octave=3,
            ratios=[0.5, 1.0, 2.0],
            strides=_base_.levels,
        ),
        bbox_coder=dict(
            type='DeltaXYWHBBoxCoder',
            target_means=[0.0, 0.0, 0.0, 0.0],
            target_stds=[1.0, 1.0, 1.0, 1.0],
        ),
        loss_cls=dict(type='FocalLoss', use_sigmoid=True, gamma=2.0, alpha=0.25, loss_weight=1.0),
        loss_bbox=dict(type='L1Loss', loss_weight=1.0),
    ),
    train_cfg=dict(
        assigner=dict(
            type='MaxIoUAssigner',
            pos_iou_thr=0.5,
            neg_iou_thr=0.4,
            min_pos_iou=0,
            ignore_iof_thr=-1,
        ),
        # Focal loss uses all anchors.
        sampler=dict(type='PseudoSampler'),
        allowed_border=-1,
        pos_weight=-1,
    ),
    test_cfg=dict(nms=dict(iou_threshold=0.5)),
)
