# With averaged weights, which are also what is evaluated; mmdet's settings for RTMDet.
_base_ = './retinanet_ptnt_s_1x.py'

custom_hooks = [
    *_base_.custom_hooks,
    dict(type='EMAHook', ema_type='ExpMomentumEMA', momentum=0.0002, update_buffers=True),
]
