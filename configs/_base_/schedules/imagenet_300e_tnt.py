# As TNT's authors train: a warm-up of 5 epochs.
_base_ = './imagenet_300e.py'

param_scheduler = [
    dict(_base_.param_scheduler[0], end=5),
    dict(_base_.param_scheduler[1], T_max=295, begin=5),
]
