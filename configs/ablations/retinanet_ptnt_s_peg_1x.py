# RetinaNet with PyramidTNT-S whose positions are generated from its content, by a PEG after the
# first block of every stage: no table has to be resized for an image. Ours, not the paper's.
_base_ = '../retinanet_ptnt_s_1x.py'

model = dict(backbone=dict(position='peg'))
# There is no table of sentences to exempt from decay.
optim_wrapper = dict(
    paramwise_cfg=dict(
        custom_keys=dict(_delete_=True, inner_pos=dict(decay_mult=0.0)),
    )
)
