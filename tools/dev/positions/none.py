# Sentences without positions; words keep their table.
_base_ = './tables.py'

model = dict(backbone=dict(position='none'))
optim_wrapper = dict(
    paramwise_cfg=dict(custom_keys=dict(_delete_=True, inner_pos=dict(decay_mult=0.0)))
)
