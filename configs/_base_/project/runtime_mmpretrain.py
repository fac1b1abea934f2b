# As default_runtime_mmpretrain.py, counted in epochs; keeps the last checkpoint and the best.
_base_ = '../default_runtime_mmpretrain.py'

custom_imports = dict(imports=['ptnt_mm.workbench', 'ptnt_mm.weights.safe_loading'])
default_hooks = dict(
    logger=dict(interval=10),
    checkpoint=dict(interval=1, max_keep_ckpts=1, save_best='accuracy/top1'),
)
randomness = dict(seed=0)
