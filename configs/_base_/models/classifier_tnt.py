# A classifier with TNT-S. A leaf of another size sets the arch and the channels.
_base_ = './classifier_ptnt.py'

model = dict(
    # mmpretrain has a different TNT, which it would use.
    backbone=dict(
        _delete_=True,
        type='mmengine.TNT',
        arch='small',
        out_type='cls_token',
        drop_path_rate=0.1,
    ),
    neck=None,
    head=dict(in_channels=384),
)
