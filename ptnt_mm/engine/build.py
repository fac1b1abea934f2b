"""From a config to a model or a runner, with errors that a user can act on."""

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.config import Config
from mmengine.registry import MODELS, RUNNERS, DefaultScope
from mmengine.runner import Runner
from torch import nn

from ptnt_mm.engine.config import explain_build_error
from ptnt_mm.engine.failures import explain_full_disk
from ptnt_mm.engine.hosts import import_host, scope_of
from ptnt_mm.engine.runner import QuietRunner
from ptnt_mm.engine.safeguards import use_safeguards
from ptnt_mm.utils.errors import UserError


def build_model(config: Config, name: str = 'the model') -> nn.Module:
    """Import the host library and build a config's model, with random weights.

    Raises:
        UserError: if the host cannot be imported, or a constructor refuses its arguments; says
            that ``name`` cannot be built.
    """
    scope = scope_of(config)
    import_host(scope)
    with (
        DefaultScope.overwrite_default_scope(scope),
        explained_building(name),
        warnings.catch_warnings(),
    ):
        # Libraries warn of each other's future, which nobody can change here.
        warnings.simplefilter('ignore')
        # Some of mmdet's constructors write into their settings.
        settings = copy.deepcopy(config.model)
        # As MMEngine's runner does: mmpretrain's configs have it at their top.
        if config.get('data_preprocessor') is not None:
            settings.setdefault('data_preprocessor', copy.deepcopy(config.data_preprocessor))
        return MODELS.build(settings)


def build_runner(config: Config, checkpoint: dict | None = None) -> Runner:
    """Import the host library and build the runner, with the hooks that every run gets.

    Args:
        config: Gets those hooks.
        checkpoint: What was read of the checkpoint to resume: it is not read again.

    Raises:
        UserError: if the host cannot be imported, or a constructor refuses its arguments.
    """
    import_host(scope_of(config))
    use_safeguards(config)
    with explained_building(config.filename or 'the config'):
        if 'runner_type' in config:
            return RUNNERS.build(config)
        runner = QuietRunner.from_cfg(config)
    runner.checkpoint = checkpoint
    return runner


@contextmanager
def explained_building(what: str) -> Iterator[None]:
    """Raise a UserError that explains what a constructor refuses, in place of what it raises."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # constructors may raise anything
        full = explain_full_disk(error)
        explanation = full or f'{what} cannot be built: {explain_build_error(error)}'
        raise UserError(explanation) from error
