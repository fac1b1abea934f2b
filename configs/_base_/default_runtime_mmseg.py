_base_ = ['mmseg::_base_/default_runtime.py', './hooks.py']

default_hooks = dict(
    timer=dict(type='IterTimerHook'),
    logger=dict(type='LoggerHook', interval=50, log_metric_by_epoch=False),
    param_scheduler=dict(type='ParamSchedulerHook'),
    # Writes checkpoints atomically, so that a complete one always exists.
    checkpoint=dict(type='WholeCheckpointHook', by_epoch=False, interval=4_000, max_keep_ckpts=3),
    sampler_seed=dict(type='DistSamplerSeedHook'),
    visualization=dict(type='SegVisualizationHook'),
)
