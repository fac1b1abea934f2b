"""Trace an exception in a tried step back to the wrong setting."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from ptnt_mm.utils.console import show_traceback
from ptnt_mm.utils.frames import (
    failing_part,
    failing_transform,
    one_line,
    place_in_own_code,
    running_objects,
)
from ptnt_mm.workbench.config.causes import Kind, explain
from ptnt_mm.workbench.config.settings import dicts_within, short_name
from ptnt_mm.workbench.config.view import ConfigView

NOT_COMPLETED = 'this check could not be completed'
"""The start of the message about an exception in a check itself."""


class StepFailure(Exception):
    """Raised when a tried step fails.

    Attributes:
        where: The part of the config that is probably wrong. The cause contains the rest.
    """

    def __init__(self, where: str):
        super().__init__(where)
        self.where = where


@contextmanager
def at(where: str) -> Iterator[None]:
    """Convert any exception to a StepFailure with a part of the config."""
    try:
        yield
    except StepFailure:
        raise
    except Exception as error:  # pipelines, models and metrics may raise anything
        raise StepFailure(where) from error


def describe(failed: StepFailure, view: ConfigView) -> tuple[str, str]:
    """The setting that is probably wrong, and its effect in one line.

    With ``PTNT_TRACEBACK=1``, the traceback is printed too.
    """
    error = failed.__cause__
    show_traceback(error)
    where, culprit = failed.where, failing_part(error)
    if failed.where.startswith('model'):
        where, culprit = _failing_part(error, view) or (where, culprit)
    elif path := _failing_transform(error, failed.where, view):
        where = path
    named = not isinstance(error, AssertionError | ValueError)
    reason = explain(error, Kind.CONFIG) or one_line(error, named)
    by = f'{culprit} fails' if culprit else 'fails'
    return where, f'{by}: {reason}{place_in_own_code(error)}'


def describe_bug(error: Exception) -> str:
    """An exception in a check itself, in one line."""
    return f'{NOT_COMPLETED}: {one_line(error, named=True)}'


def _failing_part(error: BaseException, view: ConfigView) -> tuple[str, str] | None:
    """The innermost part of the model in the config, by its path and its class."""
    paths: dict[str, str] = {}
    for path, settings in dicts_within(view.model, 'model'):
        paths.setdefault(short_name(settings), path)
    modules = (owner for owner in running_objects(error) if isinstance(owner, nn.Module))
    names = [name for name in (type(module).__name__ for module in modules) if name in paths]
    return (paths[names[-1]], names[-1]) if names else None


def _failing_transform(error: BaseException, where: str, view: ConfigView) -> str | None:
    """The path of the pipeline's transform in which an exception was raised."""
    found, (split, _, part) = failing_transform(error), where.partition('_')
    if found is None or part != 'dataloader.dataset':
        return None
    steps, step = found
    for path, settings in dicts_within(view.split(split).dataset, where):
        pipeline, i = settings.get('pipeline') or (), steps.index(step)
        if len(pipeline) == len(steps) and short_name(pipeline[i]) == type(step).__name__:
            return f'{path}.pipeline[{i}]'
    return None
