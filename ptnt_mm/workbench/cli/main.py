"""The command ``ptnt``: finds a command by its name, runs it, and ends the process."""

import argparse
import atexit
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from typing import NoReturn

from ptnt_mm.utils.text import suggest
from ptnt_mm.version import __version__
from ptnt_mm.workbench.cli import commands
from ptnt_mm.workbench.cli.commands import COMMANDS

_COMMANDS_ELSEWHERE = dict(
    predict='infer',
    detect='infer',
    val='test',
    eval='test',
    fit='train',
    init='new',
    create='new',
    version='--version',
)
"""The names of other tools for our commands."""

_SHORT = {'list': 'configs list', 'copy': 'configs copy'}


def main() -> int:
    """Run the command of the command line; return its exit status."""
    parser, names = _parser(), [*COMMANDS, *_SHORT]
    if not sys.argv[1:]:
        parser.print_help(sys.stderr)
        return 2
    if not sys.argv[1].startswith('-') and sys.argv[1] not in names:
        meant = _COMMANDS_ELSEWHERE.get(sys.argv[1], '')
        suggestion = f'did you mean {meant!r}?' if meant else suggest(sys.argv[1], names)
        suggestion = suggestion or 'ptnt --help lists them'
        parser.error(f'unknown command {sys.argv[1]!r}: {suggestion}')
    name = parser.parse_args(sys.argv[1:2]).command
    name, *part = _SHORT.get(name, name).split()
    # As for a script of this name: parsers show it, and `command_line` reads it.
    sys.argv[:2] = [f'ptnt {name}', *part]
    try:
        status = run(name)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe, as in `ptnt configs | head`. Python's last flush must succeed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    return status


def run(name: str, words: Sequence[str] | None = None) -> int:
    """Run a command on words, by default those of this process; return its exit status."""
    try:
        from ptnt_mm.workbench.cli.start import parser_of
    except ImportError as error:  # where only exported files run, not even rich is installed
        sys.exit(f'error: {error}. Install what this command needs: pip install ptnt_mm')
    return parser_of(name).run(partial(commands.run, name), words)


def leave(status: int) -> NoReturn:
    """End the process, without Python's cleanup unless the code of a config may need it.

    The cleanup of torch and mmdet takes a second or two.
    """
    command = COMMANDS.get(sys.argv[0].removeprefix('ptnt '))
    if command is not None and command.runs_hooks:
        sys.exit(status)
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None if it was closed
        stream.flush()
    os._exit(status)


def _parser() -> argparse.ArgumentParser:
    """The parser of the first word; the others belong to the command."""
    parser = argparse.ArgumentParser(
        'ptnt',
        'ptnt COMMAND ...',
        'Transformer in Transformer for MMDetection, MMSegmentation and MMPretrain.',
        'ptnt COMMAND --help shows its flags and an example. Exit status: 0 done, 1 an error, or '
        'errors found, 2 a wrong command line, 130 stopped by Ctrl-C.',
    )
    parser.add_argument('--version', action='version', version=__version__)
    rows = parser.add_subparsers(title='commands', dest='command', metavar='COMMAND', required=True)
    for command in COMMANDS.values():
        rows.add_parser(command.name, help=command.title, add_help=False)
    for name in _SHORT:
        rows.add_parser(name, add_help=False)
    return parser
