_base_ = ['mmdet::_base_/default_runtime.py', './hooks.py']

# Whole checkpoints, of which a good one is always there.
default_hooks = dict(checkpoint=dict(type='WholeCheckpointHook', max_keep_ckpts=3))
