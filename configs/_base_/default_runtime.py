_base_ = 'mmdet::_base_/default_runtime.py'

custom_imports = dict(imports=['ptnt_mm'], allow_failed_imports=False)

# Refuses checkpoints of another model, where MMEngine would only warn, and never runs what a
# checkpoint stores as its config. A config that sets custom_hooks has to list it again.
custom_hooks = [dict(type='CheckpointGuardHook')]

default_hooks = dict(checkpoint=dict(max_keep_ckpts=3))
