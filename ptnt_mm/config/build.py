"""Build the model of a config, and explain why something that a config names cannot be built."""

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.config import Config
from mmengine.model import is_model_wrapper
from mmengine.registry import MODELS, DefaultScope
from torch import nn

from ptnt_mm.config.causes import Kind, explain, one_line
from ptnt_mm.config.frames import place_in_own_code
from ptnt_mm.config.hosts import import_host
from ptnt_mm.config.settings import scope_of
from ptnt_mm.utils.errors import UserError
from ptnt_mm.weights.mmengine import require_safe_loading


def build_model(config: Config, name: str = 'the model') -> nn.Module:
    """Import the host library and build a config's model, with random weights.

    From here on, MMEngine loads checkpoints safely, even with ``PTNT_SAFE_LOADING=0``.

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
        return MODELS.build(settings)


def unwrapped(model: nn.Module) -> nn.Module:
    """The model itself, without a wrapper such as DistributedDataParallel."""
    return model.module if is_model_wrapper(model) else model


@contextmanager
def explained_building(what: str) -> Iterator[None]:
    """Convert any exception of a constructor to a UserError that explains it.

    Args:
        what: What is being built, such as 'the model'; the message begins with it.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # constructors may raise anything
        # Constructors may write files, as that of a run does.
        reason = explain(error, Kind.DISK) or explain_build_error(error)
        raise UserError(f'{what} cannot be built: {reason}') from error


@contextmanager
def explained_late_building(what: str) -> Iterator[None]:
    """Convert an exception about settings or missing files to a UserError; leave all others.

    For what MMEngine builds when a run starts. Data sets then read their files, and an error in
    the code of a data set needs its traceback.

    Args:
        what: What is being built, as in :func:`explained_building`.
    """
    try:
        yield
    except OSError as error:
        if absent := explain(error, Kind.DATA):
            raise UserError(str(absent)) from error
        raise
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, KeyError) and explain(error, Kind.CONFIG) is None:
            raise
        raise UserError(f'{what} cannot be built: {explain_build_error(error)}') from error


def explain_build_error(error: Exception) -> str:
    """Explain in one line what a constructor refused; suggest the nearest argument or class.

    An exception in the user's own class is reported with its file and line.
    """
    if wrong := explain(error, Kind.CONFIG):
        return str(wrong)
    # The message of a KeyError is only the key.
    return f'{one_line(error, named=isinstance(error, KeyError))}{place_in_own_code(error)}'
