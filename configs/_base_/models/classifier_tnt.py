# A classifier with TNT. A leaf sets the arch and the channels, both from archs/.
_base_ = './classifier_ptnt.py'

model = dict(
    # mmpretrain has a different TNT, which it would use.
    backbone=dict(_delete_=True, type='mmengine.TNT', out_type='cls_token', drop_path_rate=0.1),
    neck=None,
)
