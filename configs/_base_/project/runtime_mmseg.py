# As default_runtime_mmseg.py, counted in epochs; keeps the last checkpoint and the best.
_base_ = '../default_runtime_mmseg.py'

custom_imports = dict(imports=['ptnt_mm.workbench', 'ptnt_mm.weights.safe_loading'])
default_hooks = dict(
    logger=dict(interval=10, log_metric_by_epoch=True),
    checkpoint=dict(by_epoch=True, interval=1, max_keep_ckpts=1, save_best='mIoU'),
)
randomness = dict(seed=0)
log_processor = dict(by_epoch=True)
