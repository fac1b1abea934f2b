_base_ = ['./retinanet_ptnt_ti.py', './_base_/swin.py']

model = dict(
    backbone=dict(_delete_=True, out_indices=(1, 2, 3), **_base_.peer),
    neck=[dict(_base_.model.neck[1], in_channels=_base_.channels[1:])],
)
optim_wrapper = dict(paramwise_cfg=dict(custom_keys=dict(_delete_=True, **_base_.custom_keys)))
