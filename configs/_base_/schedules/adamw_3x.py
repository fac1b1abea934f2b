# 36 epochs, lr / 10 after 27 and 33, as in the paper (arXiv 2201.00978, section 4.2).
_base_ = './adamw_1x.py'

train_cfg = dict(max_epochs=36)
param_scheduler = [
    _base_.param_scheduler[0],
    dict(_base_.param_scheduler[1], end=36, milestones=[27, 33]),
]
