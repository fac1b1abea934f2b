# Generalized Focal Loss (2006.04388): ATSS's assignment; the score is the predicted overlap, and
# each side of a box is a distribution over distances.
_base_ = ['../../models/gfl_ptnt.py', '../parts.py']

model = dict(
    data_preprocessor=dict(pad_size_divisor=64),  # the last stride of the backbone
    backbone=dict(_base_.backbone, _delete_=True),
    neck=dict(_base_.pyramid, _delete_=True),
    bbox_head=dict(
        _base_.head,
        anchor_generator=dict(octave_base_scale=4),
        # mmdet draws all layers with a deviation of 0.01. At the learning rate of a new head, an
        # iteration then turns the towers too far: docs/research/pretrain.md.
        init_cfg=dict(
            type='Kaiming',
            layer='Conv2d',
            override=[
                dict(type='Normal', name='gfl_cls', std=0.01, bias_prob=0.01),
                dict(type='Normal', name='gfl_reg', std=0.01),
            ],
        ),
    ),
)
