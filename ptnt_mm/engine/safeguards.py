"""The hooks and the loop that every run gets, with any config."""

import copy
from collections.abc import Mapping

from mmengine.config import Config

from ptnt_mm.config.settings import type_name
from ptnt_mm.config.view import ConfigView
from ptnt_mm.config.zoo import config_root


def safeguards() -> list[dict]:
    """The settings of the hooks, from ``configs/_base_/hooks.py``."""
    return Config.fromfile(config_root() / '_base_' / 'hooks.py').custom_hooks


def with_safeguards(config: Config) -> Config:
    """A copy of a config with the hooks that it lacks; hooks that it has keep their settings."""
    view, config = ConfigView(config), copy.copy(config)
    hooks, defaults = view.custom_hooks, view.default_hooks
    named = {type_name(hook) for hook in hooks if isinstance(hook, Mapping)}
    config.custom_hooks = hooks + [hook for hook in safeguards() if hook.type not in named]
    # MMEngine adds its own if the key is missing; None disables checkpoints.
    checkpoint = defaults.get('checkpoint', dict(type='CheckpointHook', interval=1))
    if checkpoint is not None and type_name(checkpoint) == 'CheckpointHook':
        checkpoint = dict(checkpoint, type='WholeCheckpointHook')
        config.default_hooks = dict(defaults, checkpoint=checkpoint)
    if config.get('train_cfg'):
        config.train_cfg = _repeatable(config.train_cfg)
    return config


def _repeatable(loop: Mapping) -> dict:
    """Settings of a loop, with our loop in place of MMEngine's iteration-based one."""
    settings = dict(loop)
    if 'type' not in settings and settings.get('by_epoch') is False:
        # MMEngine's other name for it.
        del settings['by_epoch']
        settings['type'] = 'IterBasedTrainLoop'
    if type_name(settings) == 'IterBasedTrainLoop':
        settings['type'] = 'RepeatableIterBasedTrainLoop'
    return settings
