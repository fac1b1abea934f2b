# RetinaNet with PyramidTNT-S whose positions are generated from its content, by a PEG after the
# first block of every stage: no table has to be resized for an image. Ours, not the paper's.
_base_ = '../retinanet_ptnt_s_1x.py'

model = dict(backbone=dict(position='peg'))
