# ATSS (arXiv 1912.02424) with mmdet's head and PyramidTNT-S, on RetinaNet's strides, 8 to 128. A
# leaf of another size sets the arch and the channels.
_base_ = './retinanet_ptnt.py'

model = dict(
    type='ATSS',
    # For 36 epochs, as in the other 3x configs.
    backbone=dict(drop_path_rate=0.2),
    # RetinaNet's, with the coarsest levels made from the pyramid's output.
    neck=[_base_.model.neck[0], dict(_base_.model.neck[1], add_extra_convs='on_output')],
    bbox_head=dict(
        _delete_=True,
        type='ATSSHead',
        num_classes=80,
        in_channels=256,
        stacked_convs=4,
        feat_channels=256,
        anchor_generator=dict(
            type='AnchorGenerator',
            ratios=[1.0],
            octave_base_scale=8,
            scales_per_octave=1,
            strides=[8, 16, 32, 64, 128],
        ),
        bbox_coder=dict(
            type='DeltaXYWHBBoxCoder',
            target_means=[0.0, 0.0, 0.0, 0.0],
            target_stds=[0.1, 0.1, 0.2, 0.2],
        ),
        loss_cls=dict(type='FocalLoss', use_sigmoid=True, gamma=2.0, alpha=0.25, loss_weight=1.0),
        loss_bbox=dict(type='GIoULoss', loss_weight=2.0),
        loss_centerness=dict(type='CrossEntropyLoss', use_sigmoid=True, loss_weight=1.0),
    ),
    train_cfg=dict(
        _delete_=True,
        assigner=dict(type='ATSSAssigner', topk=9),
        allowed_border=-1,
        pos_weight=-1,
        debug=False,
    ),
    test_cfg=dict(nms=dict(iou_threshold=0.6)),
)
