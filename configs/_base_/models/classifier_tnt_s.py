_base_ = './classifier_ptnt_s.py'

model = dict(
    # mmpretrain has a different TNT, which it would use.
    backbone=dict(
        _delete_=True, type='mmengine.TNT', arch='small', out_type='cls_token', drop_path_rate=0.1
    ),
    neck=None,
    head=dict(in_channels=384),
)
