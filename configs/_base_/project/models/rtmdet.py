# The head of RTMDet (2212.07784): no anchors; the objects of a place follow from a cost that the
# current predictions determine.
_base_ = './one_stage.py'

model = dict(
    type='RTMDet',
    bbox_head=dict(
        type='RTMDetHead',
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
    test_cfg=dict(nms=dict(iou_threshold=0.65)),
)
