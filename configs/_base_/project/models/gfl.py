# Generalized Focal Loss (2006.04388): ATSS's assignment; the score is the predicted overlap, and
# each side of a box is a distribution over distances.
_base_ = './atss.py'

model = dict(
    type='GFL',
    bbox_head=dict(
        type='GFLHead',
        bbox_coder=dict(_delete_=True, type='DistancePointBBoxCoder'),
        loss_cls=dict(_delete_=True, type='QualityFocalLoss', use_sigmoid=True, beta=2.0),
        loss_dfl=dict(type='DistributionFocalLoss', loss_weight=0.25),
        reg_max=16,
    ),
)
_base_.model.bbox_head.pop('loss_centerness')
