"""How a command starts: its parser is made from its declaration, and runs it."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path

from ptnt_mm.utils.console import exit_status, show_arguments_as
from ptnt_mm.utils.noise import silence_libraries
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.workbench.cli.arguments import Command
from ptnt_mm.workbench.cli.commands import COMMANDS
from ptnt_mm.workbench.cli.flags import as_flags

_FLAGS_ELSEWHERE = {
    '--conf': ('--score-thr', 'ptnt infer PHOTOS CONFIG --score-thr SCORE'),
    '--imgsz': ('--size', 'ptnt new DATA PROJECT --size PIXELS'),
    '--output': ('--out', ''),
    '--weights': ('--pretrained', ''),
    '--batch': ('', '--cfg-options train_dataloader.batch_size=N'),
    '--batch-size': ('', '--cfg-options train_dataloader.batch_size=N'),
    '--workers': ('', '--cfg-options train_dataloader.num_workers=N'),
    '--save-txt': ('', 'ptnt infer PHOTOS CONFIG --labels yolo'),
    '--lr': ('', '--cfg-options optim_wrapper.optimizer.lr=RATE'),
    '--lr0': ('', '--cfg-options optim_wrapper.optimizer.lr=RATE'),
}
"""Flags of other tools: ours, and what to use where a command has no such flag."""

_OF_OTHER_TOOLS = ('--gpus', '--gpu-ids', '--gpu-id', '--device')
_GPUS = (
    'a process uses one GPU, the first one. Before the command, CUDA_VISIBLE_DEVICES=1 chooses '
    'another, and CUDA_VISIBLE_DEVICES=-1 the CPU. For 8 GPUs: tools/dist_train.sh CONFIG '
    '8 (to test, tools/dist_test.sh CONFIG CHECKPOINT 8), or torchrun --nproc_per_node 8 and '
    '--launcher pytorch'
)


class Parser(argparse.ArgumentParser):
    """A parser without abbreviations that suggests the nearest flag for an unknown one."""

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
        """Parse; report an unknown flag before all other errors, which it may have caused."""
        # The flags of subcommands belong to their parsers.
        if self._subparsers is None:
            words = sys.argv[1:] if args is None else args
            for word in takewhile('--'.__ne__, words):
                flag = word.partition('=')[0]
                if not flag.startswith('--') or flag in self._option_string_actions:
                    continue
                if flag in _OF_OTHER_TOOLS and '--launcher' in self._option_string_actions:
                    self.error(f'{flag}: {_GPUS}')
                shown = (action for action in self._actions if action.help != argparse.SUPPRESS)
                names = [name for action in shown for name in action.option_strings]
                known = [name for name in names if name.startswith('--')]
                meant, instead = _FLAGS_ELSEWHERE.get(flag, ('', ''))
                if meant in known:
                    self.error(f'unknown flag {flag!r}: did you mean {meant!r}?')
                if instead and (instead.startswith('ptnt') or '--cfg-options' in known):
                    self.error(f'unknown flag {flag!r}: use {instead}')
                self.error(unknown_name('flag', flag, known))
        return super().parse_known_args(args, namespace)

    def run(
        self, command: Callable[[argparse.Namespace], int | None], words: Sequence[str] | None
    ) -> int:
        """Parse a command line, by default that of this process, and run a command on it.

        Returns:
            The exit status: 0 or what the command returns, 1 for a user error.
        """
        args = self.parse_args(words)
        silence_libraries()
        if 'local_rank' in args:
            os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
        show_arguments_as(as_flags)

        return exit_status(partial(command, args))


def parser_of(name: str) -> Parser:
    """The parser of a command."""
    command = COMMANDS[name]
    parser = Parser(command.about)
    _add(parser, command)
    if command.parts:
        parts = parser.add_subparsers(dest='command', required=command.needs_part)
        for part in command.parts:
            _add(parts.add_parser(part.name, help=part.title), part)
    return parser


def _add(parser: Parser, command: Command) -> None:
    for alternatives in command.choices():
        several = len(alternatives) > 1
        owner = parser.add_mutually_exclusive_group() if several else parser
        for argument in alternatives:
            about = as_flags(argument.help) or argparse.SUPPRESS
            owner.add_argument(*argument.words, help=about, **argument.settings)


def command_line() -> tuple[str, ...]:
    """The words that started this process: 'ptnt', 'train', ... or 'python', 'train.py', ..."""
    program, *words = sys.argv
    is_ptnt = program.startswith('ptnt ')
    return (*(program.split() if is_ptnt else (Path(sys.executable).name, program)), *words)
