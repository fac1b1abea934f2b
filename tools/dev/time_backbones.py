"""Time backbones, or whole detectors, side by side, measure their memory, and draw both.

Examples:
    python tools/dev/time_backbones.py --out bench   # 15 minutes: docs/research/performance.md
    python tools/dev/time_backbones.py --models ptnt_s swin_t --sizes 512x512 --modes forward
    python tools/dev/time_backbones.py --device cuda --dtypes bfloat16 --batches 2
"""

import argparse
import json
import sys
from itertools import product
from pathlib import Path

import torch

from benchmark.contenders import BUILDERS, COMPILED, WAYS, check_name
from benchmark.figures import draw_sizes, draw_speed_and_memory
from benchmark.machine import describe_machine
from benchmark.report import to_dicts, to_tables
from benchmark.run import check_machine, time_contenders, with_costs
from benchmark.timing import FORWARD, MODES, Setting, size
from ptnt_mm.utils.atomic_files import check_new, write_atomically
from ptnt_mm.workbench.cli.start import Parser
from ptnt_mm.workbench.cli.values import positive

MODELS = ['ptnt_s', 'ptnt_s_eager', 'ptnt_s_cp', 'swin_t', 'pvt_v2_b1', 'pvt_v2_b2', 'resnet50']
MODELS += [f'ptnt_s{COMPILED}']
FILES = ('benchmark.json', 'speed_memory.png', 'size.png')

SIDES_MODELS = ('ptnt_s', 'ptnt_s_eager', 'swin_t', 'resnet50')
"""Contenders in the figure over image sizes."""

EAGER_LIMIT = 1024
"""Largest side for the published form: at 2048 its logits alone take 17 GiB."""


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument(
        '--models', nargs='+', default=MODELS, metavar='NAME',
        help=f'{", ".join(BUILDERS)}; each may end in any of {", ".join(WAYS)}; ratios '
        'refer to the first',
    )  # fmt: skip
    parser.add_argument('--modes', nargs='+', choices=MODES, default=list(MODES))
    parser.add_argument(
        '--sizes', nargs='+', type=size, default=[(800, 1344)], metavar='HxW', help='in pixels'
    )
    parser.add_argument('--batches', nargs='+', type=positive, default=[1], metavar='B')
    parser.add_argument(
        '--dtypes', nargs='+', choices=['float32', 'bfloat16', 'float16'], default=['float32'],
        help='type to autocast to',
    )  # fmt: skip
    parser.add_argument('--device', default='cpu', help='cpu, cuda or cuda:1')
    parser.add_argument('--threads', type=positive, default=2, help='CPU threads')
    parser.add_argument(
        '--rounds', type=positive, default=3, help='timed rounds, after one warm-up'
    )
    parser.add_argument(
        '--sides', nargs='*', type=positive, default=[256, 512, 1024, 2048], metavar='PIXELS',
        help='side lengths for the figure over image sizes; without a number, skip it',
    )  # fmt: skip
    parser.add_argument(
        '--no-memory', action='store_true', help='on a CPU, skip it: a process each'
    )
    parser.add_argument('--out', type=Path, metavar='FOLDER', help=f'for {", ".join(FILES)}')
    parser.add_argument('--overwrite', action='store_true', help='replace existing files')
    words = sys.argv[1:] if words is None else words
    # The default measurements take long, and may not have been intended.
    return parser.run(time_backbones, words or ['--help'])


def time_backbones(args: argparse.Namespace) -> None:
    """Measure, print the tables, and write the files.

    Raises:
        UserError: if a model is unknown, the device missing, or a file exists already.
    """
    for name in args.models:
        check_name(name)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            check_new(args.out / name, args.overwrite)
    check_machine(args.device)
    torch.set_num_threads(args.threads)
    rows = []
    for shape, batch, dtype, mode in product(args.sizes, args.batches, args.dtypes, args.modes):
        setting = Setting(mode, shape, batch, dtype, args.device)
        timed = time_contenders(args.models, setting, args.rounds)
        rows += timed if args.no_memory else [with_costs(row, args.threads) for row in timed]
    squares = []
    for side in args.sides:
        setting = Setting(FORWARD, (side, side), args.batches[0], args.dtypes[0], args.device)
        models = [name for name in SIDES_MODELS if name in args.models]
        if side > EAGER_LIMIT:
            models = [name for name in models if not name.endswith('_eager')]
        squares += time_contenders(models, setting, min(args.rounds, 2))
    machine, baseline = describe_machine(args.device, args.threads), args.models[0]
    parts = [', '.join(f'{key} {value}' for key, value in machine.items())]
    parts += [to_tables(rows, baseline), to_tables(squares, baseline)]
    print('\n\n'.join(filter(None, parts)))
    if args.out:
        found = dict(machine=machine, baseline=baseline)
        found |= dict(rows=to_dicts(rows, baseline), sizes=to_dicts(squares, baseline))
        write_atomically(args.out / FILES[0], json.dumps(found, indent=1) + '\n')
        draw_speed_and_memory(rows, machine, args.out / FILES[1])
        if squares:
            draw_sizes(squares, machine, args.out / FILES[2])


if __name__ == '__main__':
    sys.exit(main())
