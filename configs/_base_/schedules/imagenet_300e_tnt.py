# As TNT's authors train: a warm-up of 5 epochs.
_base_ = './imagenet_300e.py'

_base_.param_scheduler[0].end = _base_.param_scheduler[1].begin = 5
_base_.param_scheduler[1].T_max = 295
