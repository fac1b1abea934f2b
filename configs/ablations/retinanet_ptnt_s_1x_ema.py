# Averages the weights and evaluates the average, with mmdet's settings for RTMDet.
_base_ = '../retinanet_ptnt_s_1x.py'

custom_hooks = [
    *_base_.custom_hooks,
    dict(type='EMAHook', ema_type='ExpMomentumEMA', momentum=0.0002, update_buffers=True),
]
