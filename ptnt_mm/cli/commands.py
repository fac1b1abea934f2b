"""The command ``ptnt``: a table of commands, and the call of the chosen one.

Commands read their flags before they import torch, because the help should not wait for it: see
`ptnt_mm.cli.importing`.
"""

import argparse
import atexit
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from ptnt_mm.utils.text import suggest
from ptnt_mm.version import __version__

COMMANDS = (
    ('new', 'ptnt_mm.cli.new', 'create a training setup from labelled images'),
    ('train', 'ptnt_mm.cli.train', 'train a detector, segmenter or classifier'),
    ('test', 'ptnt_mm.cli.test', 'evaluate a checkpoint'),
    ('infer', 'ptnt_mm.cli.infer', 'predict on images, a folder, a video or a webcam'),
    ('export', 'ptnt_mm.cli.export', 'write a file that runs without torch, and check it'),
    ('check', 'ptnt_mm.cli.check', 'find problems in a config and its data'),
    ('visualize', 'ptnt_mm.cli.visualize', 'draw predictions, feature maps and attention'),
    ('report', 'ptnt_mm.cli.report', 'write one page about one or more training runs'),
    ('checkpoint', 'ptnt_mm.cli.checkpoint', 'inspect, convert or publish a checkpoint'),
    ('weights', 'ptnt_mm.cli.weights', 'list the published weights, for --pretrained'),
    ('complexity', 'ptnt_mm.cli.complexity', 'count parameters and multiply-adds'),
    ('configs', 'ptnt_mm.cli.configs', 'list the configs of this package, or copy one'),
    ('demo', 'ptnt_mm.cli.demo', 'create the demo data set, without a download'),
    ('doctor', 'ptnt_mm.cli.doctor', 'show what is installed, and how to fix it'),
    ('mmcv-ops', 'ptnt_mm.cli.mmcv_ops', "provide mmcv's operators to all programs"),
    ('completion', 'ptnt_mm.cli.completion', 'print the completion of bash, zsh or fish'),
)
"""Name, module, one line of help. The module's ``main(words)`` returns the exit status, and its
``new_parser()`` the flags for the completion."""

_WITH_HOOKS = ('train', 'test', 'report', 'export')
"""Commands that run hooks and log writers of a config, which may rely on Python's normal exit."""

_SHORT = {'list': 'configs list', 'copy': 'configs copy'}


def main() -> int:
    """Run the command of the command line; return its exit status."""
    parser, names = _parser(), [*(name for name, *_ in COMMANDS), *_SHORT]
    if not sys.argv[1:]:
        parser.print_help(sys.stderr)
        return 2
    if not sys.argv[1].startswith('-') and sys.argv[1] not in names:
        near = suggest(sys.argv[1], names) or 'ptnt --help lists them'
        parser.error(f'unknown command {sys.argv[1]!r}: {near}')
    name = parser.parse_args(sys.argv[1:2]).command
    name, *part = _SHORT.get(name, name).split()
    # As for a script of this name: parsers show it, and `command_line` reads it.
    sys.argv[:2] = [f'ptnt {name}', *part]
    modules = {known: module for known, module, _ in COMMANDS}
    try:
        command = import_module(modules[name])
    except ImportError as error:  # where only exported files run, not even rich is installed
        sys.exit(f'error: {error}. Install what this command needs: pip install ptnt_mm')
    try:
        status = command.main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe, as in `ptnt configs | head`. Python's last flush must succeed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    return status


def leave(status: int) -> NoReturn:
    """End the process, without Python's cleanup unless the code of a config may need it.

    The cleanup of torch and mmdet takes a second or two.
    """
    if command_line()[1] in _WITH_HOOKS:
        sys.exit(status)
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None if it was closed
        stream.flush()
    os._exit(status)


def command_line() -> tuple[str, ...]:
    """The words that started this process: 'ptnt', 'train', ... or 'python', 'train.py', ..."""
    program, *words = sys.argv
    is_ptnt = program.startswith('ptnt ')
    return (*(program.split() if is_ptnt else (Path(sys.executable).name, program)), *words)


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
    for name, _, about in COMMANDS:
        rows.add_parser(name, help=about, add_help=False)
    for name in _SHORT:
        rows.add_parser(name, add_help=False)
    return parser
