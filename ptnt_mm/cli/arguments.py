"""What the command lines of several tools have in common: their parser, and kinds of values."""

import argparse
import sys
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from ptnt_mm.utils.text import unknown_name


class Parser(argparse.ArgumentParser):
    """A parser that takes flags as they are written, and names the nearest to an unknown one.

    Args:
        description: Shown as it is, such as a module's docstring.
        prog: The name of the command, where it is not the script's.
    """

    def __init__(self, description: str | None = None, prog: str | None = None):
        super().__init__(
            prog=prog,
            description=description,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def parse_known_args(
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse; an unknown flag comes before all other errors, which it may have caused."""
        # The flags of a command's parts are known to their own parsers.
        if self._subparsers is None:
            words = sys.argv[1:] if args is None else args
            for word in takewhile('--'.__ne__, words):
                flag = word.partition('=')[0]
                if flag.startswith('--') and flag not in self._option_string_actions:
                    self.error(unknown_name('flag', flag, self._flags()))
        return super().parse_known_args(args, namespace)

    def _flags(self) -> list[str]:
        """Those that the help shows."""
        shown = (action for action in self._actions if action.help != argparse.SUPPRESS)
        return [flag for action in shown for flag in action.option_strings if flag[:2] == '--']


class Elsewhere(argparse.Action):
    """A flag that other tools have: an error that says what to do instead.

    Args:
        option_strings: Its names.
        dest: As argparse gives it.
        advice: What to do.
    """

    def __init__(self, option_strings: Sequence[str], dest: str, advice: str):
        super().__init__(option_strings, dest, nargs='?', help=argparse.SUPPRESS)
        self.advice = advice

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Refuse it."""
        parser.error(f'{option_string}: {self.advice}')


def size(text: str) -> tuple[int, int]:
    """Height and width in pixels, of a text such as '800x1344'.

    Raises:
        argparse.ArgumentTypeError: if it is none; argparse says so.
    """
    height, _, width = text.partition('x')
    return whole(height), whole(width)


def whole(text: str) -> int:
    """A whole number above 0.

    Raises:
        argparse.ArgumentTypeError: if it is none; argparse says so.
    """
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f'{text!r} is not a whole number above 0')
    return int(text)
