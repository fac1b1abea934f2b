# Averages the weights and evaluates the average; decay 0.99996, as TNT's and PyramidTNT's authors.
_base_ = './default_runtime_mmpretrain.py'

custom_hooks = [
    *_base_.custom_hooks,
    # MMEngine's momentum is the share of the new weights.
    dict(type='EMAHook', momentum=4e-5, update_buffers=True),
]
