_base_ = './classifier_ptnt_s.py'

model = dict(
    backbone=dict(
        _delete_=True, type='CPVT', arch='tiny', out_type='cls_token', drop_path_rate=0.1
    ),
    neck=None,
    head=dict(in_channels=192),
)
