# A PEG behind the first block of every stage in place of all tables of sentences.
_base_ = './tables.py'

model = dict(backbone=dict(position='peg'))
optim_wrapper = dict(
    paramwise_cfg=dict(custom_keys=dict(_delete_=True, inner_pos=dict(decay_mult=0.0)))
)
