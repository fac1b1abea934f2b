"""The hooks and the loop that every run gets, unless its config leaves them out."""

import copy
from collections.abc import Mapping

from mmengine.config import Config, ConfigDict
from mmengine.hooks import CheckpointHook
from mmengine.runner import IterBasedTrainLoop

from ptnt_mm.registry import HOOKS
from ptnt_mm.workbench.config.registered import classes_named
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.config.zoo import config_root

CHECKPOINTS, LOOP = 'WholeCheckpointHook', 'RepeatableIterBasedTrainLoop'
"""They take the place of MMEngine's hook and loop. All other safeguards are added hooks."""


def added_hooks() -> list[dict]:
    """The settings of the hooks that are added: those of ``hooks.py``, and the workbench's own."""
    hooks = Config.fromfile(config_root() / '_base_' / 'hooks.py').custom_hooks
    return [*hooks, ConfigDict(type='HealthHook')]


def safeguard_names() -> list[str]:
    """The names of all safeguards."""
    return [CHECKPOINTS, LOOP, *(hook.type for hook in added_hooks())]


def with_safeguards(view: ConfigView) -> Config:
    """A copy of a config with the safeguards that it does not leave out.

    Hooks that it has keep their settings. The copy imports this package, so that MMEngine can read
    the file in the work dir by itself.
    """
    config = copy.copy(view.config)
    _add_hooks(config, view)
    # MMEngine adds its own if the key is missing; None disables checkpoints.
    checkpoint = view.default_hooks.get('checkpoint', dict(type='CheckpointHook', interval=1))
    if _is(checkpoint, CheckpointHook, view) and CHECKPOINTS not in view.left_out:
        checkpoint = dict(checkpoint, type=CHECKPOINTS)
        config.default_hooks = dict(view.default_hooks, checkpoint=checkpoint)
    loop = dict(view.train.loop)
    if 'type' not in loop and loop.get('by_epoch') is False:
        del loop['by_epoch']  # MMEngine's other name for it
        loop['type'] = 'IterBasedTrainLoop'
    if _is(loop, IterBasedTrainLoop, view) and LOOP not in view.left_out:
        config.train_cfg = dict(loop, type=LOOP)
    config.custom_imports = _with_this_package(config.get('custom_imports') or {})
    return config


def _add_hooks(config: Config, view: ConfigView) -> None:
    """Add the hooks that a config lacks, and remove those that it names and leaves out."""
    found, missing = view.custom_hooks, []
    for hook in added_hooks():
        same = [other for other in found if _is(other, HOOKS.get(hook.type), view)]
        if hook.type in view.left_out:
            found = [other for other in found if other not in same]
        elif not same:
            missing.append(hook)
    config.custom_hooks = [*found, *missing]


def _is(settings: object, cls: type, view: ConfigView) -> bool:
    """Whether settings name a class, and not a namesake from another scope or registry."""
    if not isinstance(settings, Mapping):
        return False
    return cls in classes_named(settings.get('type'), settings.get('_scope_', view.scope))


def _with_this_package(imports: Mapping) -> dict:
    """Settings of ``custom_imports`` with this package."""
    modules = imports.get('imports') or []
    modules = [modules] if isinstance(modules, str) else list(modules)
    ours = ('ptnt_mm.workbench', 'ptnt_mm.weights.safe_loading')
    return dict(imports, imports=list(dict.fromkeys((*modules, *ours))))
