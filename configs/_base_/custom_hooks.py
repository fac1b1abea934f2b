# The hooks of every run, for configs that cannot inherit the imports of hooks.py.
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
]
