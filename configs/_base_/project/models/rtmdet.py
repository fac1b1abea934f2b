# The head of RTMDet (2212.07784): no anchors; the objects of a place follow from a cost that the
# current predictions determine.
_base_ = '../parts.py'

model = dict(
    type='RTMDet',
    data_preprocessor=_base_.preprocessor,
    backbone=_base_.backbone,
    neck=_base_.pyramid,
    bbox_head=dict(
        _base_.head,
        type='RTMDetHead',
        num_classes=80,
        stacked_convs=2,
        with_objectness=False,
        anchor_generator=dict(type='MlvlPointGenerator', offset=0, strides=_base_.levels),
        bbox_coder=dict(type='DistancePointBBoxCoder'),
        loss_cls=dict(type='QualityFocalLoss', use_sigmoid=True, beta=2.0, loss_weight=1.0),
        loss_bbox=dict(type='GIoULoss', loss_weight=2.0),
    ),
    train_cfg=dict(
        assigner=dict(type='DynamicSoftLabelAssigner', topk=13),
        allowed_border=-1,
        pos_weight=-1,
    ),
    test_cfg=dict(
        nms_pre=1000,
        min_bbox_size=0,
        score_thr=0.05,
        nms=dict(type='nms', iou_threshold=0.65),
        max_per_img=100,
    ),
)
