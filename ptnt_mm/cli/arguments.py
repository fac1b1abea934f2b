"""Shared parts of the command lines: parser, types of values, and how commands run."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from ptnt_mm.options import as_flags
from ptnt_mm.utils.console import exit_status
from ptnt_mm.utils.noise import silence_libraries
from ptnt_mm.utils.terminal import spell_arguments
from ptnt_mm.utils.text import unknown_name

if TYPE_CHECKING:
    from mmengine.config import Config

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
            # torch.distributed.launch passes it as an argument, torchrun by the environment.
            os.environ.setdefault('LOCAL_RANK', str(args.local_rank))
        spell_arguments(as_flags)
        return exit_status(lambda: command(args), as_flags)


def add_config(
    parser: Parser, example: str = "model.backbone.arch=tiny 'model.backbone.out_indices=(1,2)'"
) -> None:
    """Add the config and ``--cfg-options``, with an example."""
    parser.add_argument(
        'config',
        help='a file, the name of a config of this package, or a folder created by ptnt new',
    )
    parser.add_argument(
        '--cfg-options',
        nargs='+',
        action='extend',
        type=_setting,
        default=[],
        metavar='KEY=VALUE',
        help=f'change settings: {example}',
    )


def add_work_dir_and_launcher(parser: Parser) -> None:
    """Add the flags that training and testing share, besides the config."""
    parser.add_argument(
        '--work-dir', type=Path, help='folder of logs and checkpoints: work_dirs/CONFIG by default'
    )
    parser.add_argument('--launcher', choices=['none', 'pytorch', 'slurm', 'mpi'], default='none')
    parser.add_argument('--local_rank', '--local-rank', type=int, default=0, help=argparse.SUPPRESS)


def add_checkpoint(parser: Parser) -> None:
    """Add the checkpoint, which is optional after a run in the config's work dir."""
    parser.add_argument(
        'checkpoint',
        nargs='?',
        help="a training checkpoint; by default the best or the newest in the config's work dir",
    )


def config_of(args: argparse.Namespace) -> 'Config':
    """Read the config of the command line, with ``--cfg-options`` applied."""
    from ptnt_mm.config.read import parse_options, read_config

    return read_config(args.config, parse_options(args.cfg_options))


def config_and_checkpoint_of(args: argparse.Namespace) -> tuple['Config', str]:
    """Read the config of the command line, and find the checkpoint."""
    from ptnt_mm.engine.run_checkpoints import checkpoint_to_use

    config = config_of(args)
    return config, checkpoint_to_use(config, args.checkpoint)


def _setting(text: str) -> str:
    """Check KEY=VALUE and return it unchanged; argparse prints errors."""
    if '=' not in text:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected KEY=VALUE ..., with a number, a word or a list, such as '[1,2]'"
        )
    return text


def positive(text: str) -> int:
    """An integer above 0; argparse prints errors."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f'{text!r} is not an integer above 0')
    return int(text)


def not_negative(text: str) -> int:
    """An integer from 0; argparse prints errors."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f'{text!r} is not an integer from 0')
    return int(text)
