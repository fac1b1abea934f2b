# As default_runtime_mmseg.py, counted in epochs; keeps the last checkpoint and the best.
_base_ = '../default_runtime_mmseg.py'

default_hooks = dict(
    logger=dict(interval=10),
    checkpoint=dict(interval=1, max_keep_ckpts=1, save_best='mIoU'),
)
randomness = dict(seed=0)
_base_.default_hooks.logger.log_metric_by_epoch = True
_base_.default_hooks.checkpoint.by_epoch = True
log_processor = dict(by_epoch=True)
