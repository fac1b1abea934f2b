# CPVT-Ti without a class token: the mean of the tokens is classified; 74.9 % top-1 in the paper
# (arXiv 2102.10882), with PEGs after five blocks.
_base_ = '../imagenet/classifier_cpvt_ti_300e_imagenet.py'

model = dict(
    backbone=dict(
        with_cls_token=False,
        out_type='featmap',
        position=dict(type='peg', blocks=(0, 1, 2, 3, 4)),
    ),
    neck=dict(_delete_=True, type='GlobalAveragePooling'),
)
