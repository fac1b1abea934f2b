"""Explain why something that a config names cannot be built."""

from collections.abc import Iterator
from contextlib import contextmanager

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.frames import one_line, place_in_own_code
from ptnt_mm.workbench.config.causes import Kind, explain


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
    """Convert an exception about settings, files or packages to a UserError; leave all others.

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
    except (AssertionError, ImportError, KeyError, TypeError, ValueError) as error:
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
