"""Errors that a user can mend, and their wording."""

import sys
from collections.abc import Callable, Iterable

from ptnt_mm.utils.text import closest

_LISTED = 20
"""Up to so many known names are listed."""


class UserError(Exception):
    """What the user gave cannot work: the message says what, and what to do.

    The tools print it without a traceback and exit with status 1.
    """


def exit_status(command: Callable[[], int | None]) -> int:
    """Run a command line: its exit status, 1 for an error of the user's, 130 for Ctrl-C."""
    try:
        return command() or 0
    except UserError as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print('\nStopped.', file=sys.stderr)
        return 130


def unknown_name(what: str, name: object, known: Iterable[str]) -> str:
    """Say that a name is unknown and which one is nearest; list what is known if that is short."""
    known = list(known)
    near = closest(str(name), known)
    parts = [f'unknown {what} {name!r}']
    if near:
        parts.append(f'did you mean {near!r}?')
    if len(known) <= _LISTED or not near:
        parts.append(f'expected one of {", ".join(known)}')
    return ': '.join(parts[:2]) + ''.join(f' {part}' for part in parts[2:])
