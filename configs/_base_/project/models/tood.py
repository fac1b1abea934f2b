# TOOD (2108.07755): classes and boxes are predicted from common features, and the anchors that are
# best at both are trained.
_base_ = './atss.py'

model = dict(
    type='TOOD',
    bbox_head=dict(
        type='TOODHead',
        anchor_type='anchor_free',
        initial_loss_cls=dict(
            type='FocalLoss',
            use_sigmoid=True,
            activated=True,
            gamma=2.0,
            alpha=0.25,
            loss_weight=1.0,
        ),
        loss_cls=dict(
            _delete_=True, type='QualityFocalLoss', use_sigmoid=True, activated=True, beta=2.0
        ),
    ),
    train_cfg=dict(
        # The first epochs are ATSS's: alignment means nothing yet.
        initial_epoch=2,
        initial_assigner=dict(type='ATSSAssigner', topk=9),
        assigner=dict(_delete_=True, type='TaskAlignedAssigner', topk=13),
        alpha=1,
        beta=6,
    ),
)
