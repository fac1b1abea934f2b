# GFL (arXiv 2006.04388) with mmdet's head: ATSS, with a score that also predicts the overlap, and
# distributions of distances instead of offsets.
_base_ = './atss_ptnt.py'

model = dict(
    type='GFL',
    bbox_head=dict(
        _delete_=True,
        type='GFLHead',
        num_classes=80,
        in_channels=256,
        stacked_convs=4,
        feat_channels=256,
        anchor_generator=_base_.model.bbox_head.anchor_generator,
        loss_cls=dict(type='QualityFocalLoss', use_sigmoid=True, beta=2.0, loss_weight=1.0),
        loss_dfl=dict(type='DistributionFocalLoss', loss_weight=0.25),
        reg_max=16,
        loss_bbox=dict(type='GIoULoss', loss_weight=2.0),
    ),
)
