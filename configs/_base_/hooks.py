# A config that sets custom_imports or custom_hooks itself has to list these again.
custom_imports = dict(imports=['ptnt_mm'], allow_failed_imports=False)

custom_hooks = [
    # Refuses checkpoints of another model, where MMEngine would only warn, and never runs what a
    # checkpoint stores as its config.
    dict(type='CheckpointGuardHook'),
    # The config's learning rate and schedule win over those of a checkpoint that is resumed.
    dict(type='ResumeHook'),
    # A training that is resumed does what it would have done.
    dict(type='RepeatableHook'),
    dict(type='StopAtBadLossHook'),
    dict(type='StopAtBadWeightsHook'),
    dict(type='SkipCorruptImagesHook', limit=10),
    dict(type='RememberDataHook'),
    dict(type='HealthHook'),
]
