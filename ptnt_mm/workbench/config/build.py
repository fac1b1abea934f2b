"""Build the model of a config, with errors that a user can act on."""

import copy
import warnings
from collections.abc import Iterable

import torch
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from torch import nn

from ptnt_mm.models.classifiers import build_classifier, classifiers
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.weights.mmengine import require_safe_loading
from ptnt_mm.workbench.config.build_errors import explained_building
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.read import read_config, require_keys
from ptnt_mm.workbench.config.settings import dicts_within, scope_of, type_name
from ptnt_mm.workbench.config.zoo import config_names, names_config


def build_model(config: Config, name: str = 'the model') -> nn.Module:
    """Import the host library and build a config's model, with random weights.

    From here on, MMEngine loads checkpoints safely.

    Raises:
        UserError: if the host cannot be imported, or a constructor refuses its arguments; the
            message begins with ``name``.
    """
    require_safe_loading()
    scope = scope_of(config)
    import_host(scope)
    with (
        DefaultScope.overwrite_default_scope(scope),
        explained_building(name),
        warnings.catch_warnings(),
    ):
        # Deprecation warnings between libraries, which the user cannot act on.
        warnings.simplefilter('ignore')
        # Some of mmdet's constructors modify their settings.
        settings = copy.deepcopy(config.model)
        # As MMEngine's runner does: in mmpretrain's configs it is at the top level.
        if config.get('data_preprocessor') is not None:
            settings.setdefault('data_preprocessor', copy.deepcopy(config.data_preprocessor))
        if not torch.distributed.is_initialized():
            use_batch_norm(settings, NEEDS_PROCESSES)
        return MODELS.build(settings)


NEEDS_PROCESSES = ('MMSyncBN',)
"""Layers whose constructor needs the processes that they synchronise."""


def use_batch_norm(model: dict, kinds: Iterable[str]) -> bool:
    """Replace layers that synchronise processes; one process computes the same without them.

    Args:
        model: Settings, which are changed.
        kinds: The types to replace.

    Returns:
        Whether there were any.
    """
    found = [part for _, part in dicts_within(model, 'model') if type_name(part) in kinds]
    for norm in found:
        norm['type'] = 'BN'
    return bool(found)


def build_by_name(name: str, options: dict | None = None) -> nn.Module:
    """Build an arch's classifier or a config's model, with random weights.

    Args:
        name: 'tiny', 'small', 'medium', 'base', 'tnt_small' and so on, the aliases 'ti', 's', 'm',
            'b', 'tnt_s' and so on, a config file, the folder of a project, or the name of a config.
        options: Dotted keys and values that change the config.

    Raises:
        UserError: for an unknown name, options of an arch, or a config that cannot be read or built
            here.
    """
    if name in classifiers():
        if options:
            raise UserError(
                f'`options` {" ".join(options)}: {name} is an arch, without a config to change: '
                'name a config, such as classifier_ptnt_s_300e_imagenet'
            )
        return build_classifier(name)
    if not names_config(name):
        raise UserError(unknown_name('arch or config', name, [*classifiers(), *config_names()]))
    config = read_config(name, options)
    require_keys(config, ('model',))
    return build_model(config, f'the model of {name}')
