# The demo's RetinaNet with a PEG after the first block of every stage, in place of all tables of
# sentences; words keep theirs. docs/research/backbones.md compares the configs of this folder.
_base_ = '../../../configs/demo/demo_retinanet_ptnt_ti.py'

model = dict(backbone=dict(position='peg'))
