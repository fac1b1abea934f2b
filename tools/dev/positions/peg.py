# The demo's RetinaNet with a PEG after the first block of every stage, in place of all tables of
# sentences; words keep theirs. docs/family.md compares the configs of this folder.
_base_ = '../../../configs/demo/demo_retinanet_ptnt_ti.py'

model = dict(backbone=dict(position='peg'))
# As the schedule has it, without the table of sentences.
optim_wrapper = dict(
    paramwise_cfg=dict(custom_keys=dict(_delete_=True, inner_pos=dict(decay_mult=0.0)))
)
