"""How far a pass is from its own arithmetic, each of its operators timed alone.

Examples:
    python tools/floor.py                                # what docs/performance.md shows
    python tools/floor.py --model swin_t --size 512x512 --modes forward
"""

import argparse
import sys

import torch

from ptnt_mm.arguments import Parser, size, whole
from ptnt_mm.benchmark.contenders import BASELINE, names
from ptnt_mm.benchmark.floor import measure
from ptnt_mm.benchmark.run import warn_if_busy
from ptnt_mm.benchmark.timing import MODES, Setting
from ptnt_mm.errors import exit_status


def parse_args(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = Parser(__doc__)
    parser.add_argument('--model', default=BASELINE, metavar='NAME', help=', '.join(names()))
    parser.add_argument('--modes', nargs='+', choices=MODES, default=list(MODES))
    parser.add_argument('--size', type=size, default=(800, 1344), metavar='HxW', help='in pixels')
    parser.add_argument('--batch', type=whole, default=1)
    parser.add_argument('--threads', type=whole, default=2)
    parser.add_argument('--rounds', type=whole, default=3)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    args = parse_args(arguments)
    return exit_status(lambda: show(args))


def show(args: argparse.Namespace) -> None:
    """Measure and print.

    Raises:
        UserError: for an unknown model, or compiled code.
    """
    torch.set_num_threads(args.threads)
    warn_if_busy(lambda text: print(text, file=sys.stderr, flush=True))
    for mode in args.modes:
        setting = Setting(mode, args.size, args.batch)
        print(measure(args.model, setting, args.rounds).to_text() + '\n', flush=True)


if __name__ == '__main__':
    sys.exit(main())
