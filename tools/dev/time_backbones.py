"""Time backbones side by side, measure their memory, and draw both.

Examples:
    python tools/dev/time_backbones.py --out bench   # 15 minutes: the tables of docs/performance.md
    python tools/dev/time_backbones.py --models ptnt_s swin_t --sizes 512x512 --modes forward
    python tools/dev/time_backbones.py --device cuda --dtypes bfloat16 --batches 2
"""

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from benchmark.contenders import COMPILED, check_name, contender_names
from benchmark.figures import draw_sizes, draw_speed_and_memory
from benchmark.run import Plan, run_benchmark
from benchmark.timing import MODES
from ptnt_mm.cli.arguments import Parser, size, whole
from ptnt_mm.utils.atomic_files import check_new, written_whole
from ptnt_mm.utils.errors import exit_status

MODELS = ('ptnt_s', 'ptnt_s_eager', 'ptnt_s_cp', 'swin_t', 'pvt_v2_b1', 'pvt_v2_b2', 'resnet50')
COMPILED_MODELS = ('ptnt_s+compile',)
FILES = ('benchmark.json', 'speed_memory.png', 'size.png')


def parse_args(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = Parser(__doc__)
    parser.add_argument(
        '--models', nargs='+', default=[*MODELS, *COMPILED_MODELS], metavar='NAME',
        help=f'{", ".join(contender_names())}; each may end in {COMPILED}',
    )  # fmt: skip
    parser.add_argument('--modes', nargs='+', choices=MODES, default=list(MODES))
    parser.add_argument(
        '--sizes', nargs='+', type=size, default=[(800, 1344)], metavar='HxW', help='in pixels'
    )
    parser.add_argument('--batches', nargs='+', type=whole, default=[1], metavar='B')
    parser.add_argument(
        '--dtypes', nargs='+', choices=['float32', 'bfloat16', 'float16'], default=['float32'],
        help='type to autocast to',
    )  # fmt: skip
    parser.add_argument('--device', default='cpu', help='cpu, cuda or cuda:1')
    parser.add_argument('--threads', type=whole, default=2, help='CPU threads')
    parser.add_argument('--rounds', type=whole, default=3, help='timed rounds, after one warm-up')
    parser.add_argument(
        '--sides', nargs='*', type=whole, default=[256, 512, 1024, 2048], metavar='PIXELS',
        help='side lengths for the figure over image sizes; without a number, skip it',
    )  # fmt: skip
    parser.add_argument('--out', type=Path, metavar='FOLDER', help=f'for {", ".join(FILES)}')
    parser.add_argument('--overwrite', action='store_true', help='replace existing files')
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    # What it measures by default takes long, and nobody may have wanted it.
    args = parse_args(arguments or ['--help'])
    return exit_status(lambda: time_backbones(args))


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
    options = (field.name for field in dataclasses.fields(Plan))
    plan = Plan(**{name: getattr(args, name) for name in options})
    report, sizes = run_benchmark(plan, tell=lambda text: print(text, file=sys.stderr, flush=True))
    print(report.to_text())
    if sizes.rows:
        print('\n' + sizes.to_text().partition('\n\n')[2])
    if args.out:
        found = {**report.to_dict(), 'sizes': sizes.to_dict()['rows']}
        with written_whole(args.out / FILES[0]) as partial:
            partial.write_text(json.dumps(found, indent=1) + '\n', encoding='utf-8')
        draw_speed_and_memory(report, args.out / FILES[1])
        if sizes.rows:
            draw_sizes(sizes, args.out / FILES[2])


if __name__ == '__main__':
    sys.exit(main())
