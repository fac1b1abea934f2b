"""The hooks and the loop that every training gets, whatever its config says."""

from collections.abc import Iterable, Mapping

from mmengine.config import Config

from ptnt_mm.engine.config import kind_of

HOOKS = (
    'CheckpointGuardHook',
    'ResumeHook',
    'RepeatableHook',
    'StopAtBadLossHook',
    'StopAtBadWeightsHook',
    'SkipCorruptImagesHook',
    'RememberDataHook',
    'HealthHook',
)
"""Those of ours that need no settings, by their registered names."""


def use_safeguards(config: Config) -> None:
    """Add what a config of another package does not name; what it names keeps its settings."""
    add_hooks(config, HOOKS)
    defaults = config.get('default_hooks') or {}
    # MMEngine adds its own where there is none; None says that no checkpoints are wanted.
    checkpoint = defaults.get('checkpoint', dict(type='CheckpointHook', interval=1))
    if checkpoint is not None and kind_of(checkpoint) == 'CheckpointHook':
        checkpoint = dict(checkpoint, type='WholeCheckpointHook')
        config.default_hooks = dict(defaults, checkpoint=checkpoint)
    if config.get('train_cfg'):
        config.train_cfg = _repeatable(config.train_cfg)


def add_hooks(config: Config, names: Iterable[str]) -> None:
    """Add hooks without settings, but for those that the config names already."""
    hooks = list(config.get('custom_hooks') or [])
    named = {kind_of(hook) for hook in hooks if isinstance(hook, Mapping)}
    config.custom_hooks = hooks + [dict(type=name) for name in names if name not in named]


def _repeatable(loop: Mapping) -> dict:
    """Settings of a loop, with ours in place of MMEngine's iteration-based one."""
    settings = dict(loop)
    if 'type' not in settings and settings.get('by_epoch') is False:
        # MMEngine's other name for it.
        del settings['by_epoch']
        settings['type'] = 'IterBasedTrainLoop'
    if kind_of(settings) == 'IterBasedTrainLoop':
        settings['type'] = 'RepeatableIterBasedTrainLoop'
    return settings
