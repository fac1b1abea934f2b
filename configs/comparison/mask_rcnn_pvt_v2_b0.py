_base_ = ['./mask_rcnn_ptnt_ti.py', './_base_/pvt_v2_b0.py']

model = dict(
    backbone=dict(_delete_=True, **_base_.peer),
    neck=[dict(_base_.model.neck[1], in_channels=_base_.channels)],
)
optim_wrapper = dict(paramwise_cfg=dict(custom_keys=dict(_delete_=True, **_base_.custom_keys)))
