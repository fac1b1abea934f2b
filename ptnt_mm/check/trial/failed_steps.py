"""Trace an exception in a tried step back to the wrong setting."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.config import Config
from mmengine.dataset import Compose
from mmengine.evaluator import BaseMetric
from torch import nn

from ptnt_mm.config.settings import dicts_within, kind_of
from ptnt_mm.explain.build_errors import explain_refusal
from ptnt_mm.explain.frames import place_in_own_code
from ptnt_mm.utils.console import show_traceback
from ptnt_mm.utils.text import one_line

NOT_COMPLETED = 'this check could not be completed'
"""The start of the message about an exception in a check itself."""

_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


class StepError(Exception):
    """Raised when a tried step fails.

    Attributes:
        where: The part of the config that is probably wrong. The cause contains the rest.
    """

    def __init__(self, where: str):
        super().__init__(where)
        self.where = where


@contextmanager
def at(where: str) -> Iterator[None]:
    """Convert any exception to a StepError with a part of the config."""
    try:
        yield
    except StepError:
        raise
    except Exception as error:  # pipelines, models and metrics may raise anything
        raise StepError(where) from error


def describe(failed: StepError, config: Config) -> tuple[str, str]:
    """The setting that is probably wrong, and its effect in one line.

    With ``PTNT_TRACEBACK=1``, the traceback is printed too.
    """
    error = failed.__cause__
    show_traceback(error)
    where, culprit = failed.where, failing_class(error)
    if failed.where.startswith('model'):
        where, culprit = _failing_part(error, config) or (where, culprit)
    elif path := _failing_transform(error, failed.where, config):
        where = path
    # Many assertions in the hosts have no message.
    message = one_line(error) if str(error).strip() else failing_line(error)
    reason = explain_refusal(error) or message
    by = f'{culprit} fails: ' if culprit else 'fails: '
    kind = '' if isinstance(error, AssertionError | ValueError) else f'{type(error).__name__}: '
    return where, f'{by}{kind}{reason}{place_in_own_code(error)}'


def describe_bug(error: Exception) -> str:
    """An exception in a check itself, in one line."""
    return f'{NOT_COMPLETED}: {type(error).__name__}: {error}'


def failing_class(error: BaseException) -> str | None:
    """The innermost part of a model, metric or transform in which an exception was raised."""
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        owner = frame.f_locals.get('self')
        is_part = isinstance(owner, (nn.Module, BaseMetric)) or hasattr(owner, 'transform')
        named = type(owner).__module__.split('.')[0] not in ('torch', 'mmengine')
        if is_part and named and not isinstance(owner, _CONTAINERS):
            found = type(owner).__name__
    return found


def failing_line(error: BaseException) -> str:
    """The line of code that raised an exception; the name of its class if that is unknown."""
    frames = traceback.extract_tb(error.__traceback__)
    return (frames[-1].line if frames else '') or type(error).__name__


def _failing_part(error: BaseException, config: Config) -> tuple[str, str] | None:
    """The innermost part of the model in the config, by its path and its class."""
    paths: dict[str, str] = {}
    for path, settings in dicts_within(config.model, 'model'):
        paths.setdefault(kind_of(settings), path)
    found = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        name = type(frame.f_locals.get('self')).__name__
        if isinstance(frame.f_locals.get('self'), nn.Module) and name in paths:
            found = paths[name], name
    return found


def _failing_transform(error: BaseException, where: str, config: Config) -> str | None:
    """The path of the pipeline's transform in which an exception was raised."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is Compose.__call__.__code__ and 't' in frame.f_locals:
            steps, step = frame.f_locals['self'].transforms, frame.f_locals['t']
            return _path_of(steps.index(step), type(step).__name__, len(steps), where, config)
    return None


def _path_of(i: int, kind: str, length: int, where: str, config: Config) -> str | None:
    top, _, key = where.partition('.')
    for path, settings in dicts_within((config.get(top) or {}).get(key), where):
        pipeline = settings.get('pipeline') or ()
        if len(pipeline) == length and kind_of(pipeline[i]) == kind:
            return f'{path}.pipeline[{i}]'
    return None
