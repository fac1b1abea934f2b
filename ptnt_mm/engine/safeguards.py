"""The hooks that every training gets, whatever its config says."""

from mmengine.config import Config

HOOKS = (
    'CheckpointGuardHook',
    'RepeatableHook',
    'StopAtBadLossHook',
    'SkipCorruptImagesHook',
    'RememberAnnotationsHook',
    'HealthHook',
)
"""Those of ours that need no settings, by their registered names."""


def use_safeguards(config: Config) -> None:
    """Add what a config of another package does not name; what it names keeps its settings."""
    hooks = list(config.get('custom_hooks') or [])
    named = {hook.get('type') for hook in hooks}
    config.custom_hooks = hooks + [dict(type=name) for name in HOOKS if name not in named]
    checkpoint = (config.get('default_hooks') or {}).get('checkpoint')
    if checkpoint is not None and checkpoint.get('type') == 'CheckpointHook':
        checkpoint.type = 'WholeCheckpointHook'
