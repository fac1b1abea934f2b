"""Run commands, and print their errors and warnings in colour on a terminal."""

import os
import re
import shutil
import sys
import textwrap
import traceback
from collections.abc import Callable
from io import TextIOWrapper
from typing import TextIO

from rich.console import Console
from rich.highlighter import RegexHighlighter

from ptnt_mm.utils.errors import UserError

_spelling: Callable[[str], str] = str
"""How arguments that text names are shown."""


class _News(RegexHighlighter):
    """Highlights words such as error and ok; each group is named by its colour."""

    highlights = (
        r'(?m)^ *(?P<red>error)\b',
        r'(?m)^ *(?P<yellow>warning)\b',
        r'(?m)^ *(?P<green>ok)\b',
        r'(?P<red>BROKEN)',
        # The last line of a check.
        r'^ *(?P<red>[1-9]\d* errors?, \d+ warnings?)$',
        r'^ *(?P<yellow>0 errors, [1-9]\d* warnings?)$',
        r'^ *(?P<green>no problems found)$',
    )


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a standard stream is a terminal; None if it was closed before Python started."""
    return stream is not None and stream.isatty()


def show(text: str, stderr: bool = False) -> None:
    """Print text, in colours on a terminal unless NO_COLOR is set."""
    console = Console(stderr=stderr, highlighter=_News())
    with console.capture() as captured:
        console.print(text, markup=False, emoji=False, soft_wrap=True)
    # The stream may be rich's, which keeps a progress bar below what is printed.
    print(captured.get(), end='', file=sys.stderr if stderr else sys.stdout)


def wrapped(text: str, width: int, column: int = 4) -> str:
    """Wrap long lines between words; paths and flags stay whole.

    Args:
        text: One or more lines.
        width: In characters.
        column: Where the rest of a wrapped line begins, unless the line itself is indented more,
            or is the row of a table: then below its last cell that begins in the left third.
    """
    whole = dict(break_long_words=False, break_on_hyphens=False)
    lines = []
    for line in text.strip('\n').split('\n'):
        words = line.lstrip()
        own = line.removesuffix(words)
        cells = [match.end() for match in re.finditer(r'\S {2,}(?=\S)', line)]
        rest = max((cell for cell in (*cells, column) if cell <= width // 3), default=0)
        rest = ' ' * max(rest, len(own))
        lines += textwrap.wrap(
            words, width, initial_indent=own, subsequent_indent=rest, **whole
        ) or ['']
    return '\n'.join(lines)


def show_arguments_as(spelling: Callable[[str], str]) -> None:
    """Choose how arguments that text names between backquotes are shown, see `UserError`."""
    global _spelling
    _spelling = spelling


def for_user(text: str) -> str:
    """Text with its arguments as they are shown: commands show flags."""
    return _spelling(text)


def fitted(text: str, stream: TextIO | None) -> str:
    """Text for the user, wrapped if the stream is a terminal: in a file, a line stays a line."""
    text = for_user(text)
    return wrapped(text, shutil.get_terminal_size().columns) if is_terminal(stream) else text


def show_traceback(error: BaseException) -> None:
    """Print the traceback of an exception if ``PTNT_TRACEBACK=1`` is set."""
    if os.environ.get('PTNT_TRACEBACK') == '1':
        traceback.print_exception(error)


def exit_status(command: Callable[[], int | None]) -> int:
    """Run a command; return its exit status: 1 for a user error, 130 for Ctrl-C."""
    if isinstance(sys.stdout, TextIOWrapper):
        # Printing a file name that is not valid text must not raise, as on standard error.
        sys.stdout.reconfigure(errors='backslashreplace')
    try:
        return command() or 0
    except UserError as error:
        show_traceback(error)
        show(fitted(f'error: {error}', sys.stderr), stderr=True)
        return 1
    except KeyboardInterrupt as stopped:
        print(f'\nStopped: {stopped}' if str(stopped) else '\nStopped.', file=sys.stderr)
        return 130
