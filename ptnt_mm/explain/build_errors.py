"""Explain why something that a config names cannot be built."""

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from mmengine.registry import build_from_cfg

from ptnt_mm.explain.frames import place_in_own_code
from ptnt_mm.explain.public_data import how_to_get
from ptnt_mm.explain.registered import arguments_of, registered_names
from ptnt_mm.utils.atomic_files import DISK_ERRORS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import one_line, unknown_name

_NOT_REGISTERED = re.compile(r'(\w+) is not in the (.+?) registry')
_REFUSED = re.compile(r"unexpected keyword argument '(\w+)'")


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
        raise UserError(_explain_first_write(error) or _explain(what, error)) from error


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
    except (AssertionError, KeyError, OSError, TypeError, ValueError) as error:
        explanation = _explain_late(what, error)
        if explanation is None:
            raise
        raise UserError(explanation) from error


def explain_build_error(error: Exception) -> str:
    """Explain in one line what a constructor refused; suggest the nearest argument or class.

    An exception in the user's own class is reported with its file and line.
    """
    # The message of a KeyError is only the key.
    message = one_line(error, named=isinstance(error, KeyError))
    return explain_refusal(error) or f'{message}{place_in_own_code(error)}'


def explain_refusal(error: Exception) -> str | None:
    """Explain an unknown class or argument in a config; None for all other errors.

    An unexpected argument counts only if it comes from the config. In other calls it is a bug.
    """
    absent, refused = _NOT_REGISTERED.search(str(error)), _REFUSED.search(str(error))
    if absent:
        scope, _, kind = absent[2].rpartition('::')
        return unknown_name('type', absent[1], sorted(registered_names(kind, scope)))
    if refused and (cls := _class_that_got(refused[1], error)) is not None:
        known = arguments_of(cls).parameters
        return f'{cls.__name__}: {unknown_name("argument", refused[1], known)}'
    return None


def _explain(what: str, error: Exception) -> str:
    return f'{what} cannot be built: {explain_build_error(error)}'


def _explain_first_write(error: Exception) -> str | None:
    """Explain that the first files of a run cannot be written; None for all other errors."""
    if isinstance(error, OSError) and error.errno in DISK_ERRORS:
        problem, remedy = DISK_ERRORS[error.errno]
        return f'{problem}: {remedy}, or choose another --work-dir'
    return None


def _explain_late(what: str, error: Exception) -> str | None:
    """Explain in one line what is refused, missing, or cannot be downloaded; None otherwise."""
    if isinstance(error, OSError):
        # With this function, mmpretrain's data sets download their files.
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_name == 'download_and_extract_archive':
                given = frame.f_locals
                return (
                    f'{given["url"]} cannot be downloaded: {error}. Download it on another '
                    f'machine, and put the archive into the folder {given["download_root"]}'
                )
        if isinstance(error, FileNotFoundError):
            return f'{error.filename} does not exist. {how_to_get(error.filename)}'
        return None
    if isinstance(error, KeyError) and explain_refusal(error) is None:
        return None
    return _explain(what, error)


def _class_that_got(argument: str, error: Exception) -> type | None:
    """The class that MMEngine's registry called last, if with this argument; from the traceback."""
    call = {}
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is build_from_cfg.__code__:
            call = frame.f_locals
    cls = call.get('obj_cls')
    return cls if isinstance(cls, type) and argument in call['args'] else None
