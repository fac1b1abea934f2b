_base_ = ['mmpretrain::_base_/default_runtime.py', './hooks.py']

# Writes checkpoints atomically, so that a complete one always exists.
default_hooks = dict(checkpoint=dict(type='WholeCheckpointHook', max_keep_ckpts=3))
