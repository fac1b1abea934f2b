# Sines and cosines in place of all tables of sentences.
_base_ = './tables.py'

model = dict(backbone=dict(position='sinusoidal'))
optim_wrapper = dict(
    paramwise_cfg=dict(custom_keys=dict(_delete_=True, inner_pos=dict(decay_mult=0.0)))
)
