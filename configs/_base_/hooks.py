# For mmdet's own train.py and those of the other hosts: there, a config that sets custom_imports or
# custom_hooks itself must repeat these entries. `ptnt train` adds those that are missing.
custom_imports = dict(imports=['ptnt_mm'], allow_failed_imports=False)

custom_hooks = [
    # Rejects checkpoints of a different model (MMEngine only warns), and never executes the config
    # stored in a checkpoint.
    dict(type='CheckpointGuardHook'),
    # On resume, the config's learning rate and schedule take precedence over the checkpoint's.
    dict(type='ResumeHook'),
    # A resumed run gives the same result as an uninterrupted one.
    dict(type='RepeatableHook'),
    # All processes evaluate, and one of them saves, the same network.
    dict(type='AverageBuffersHook'),
    dict(type='StopAtNaNHook'),
    dict(type='SkipCorruptImagesHook', limit=10),
    dict(type='HealthHook'),
]
