"""Count the parameters and multiply-adds of an arch or a config's model, part by part.

Examples:
    python tools/complexity.py small --shape 256 256
    python tools/complexity.py tnt_small --shape 224 224
    python tools/complexity.py configs/retinanet_ptnt_s_1x.py --shape 800 1280 --json cost.json
"""

import argparse
import json
import sys
from pathlib import Path

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.engine.complexity import build, measure
from ptnt_mm.utils.atomic_files import check_new, written_whole
from ptnt_mm.utils.errors import UserError, exit_status


def parse_args(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = Parser(__doc__)
    parser.add_argument(
        'model',
        help='tiny, small, medium, base, tnt_small, tnt_base, a config file or a config name',
    )
    parser.add_argument(
        '--shape', type=int, nargs=2, required=True, metavar=('H', 'W'), help='image size in pixels'
    )
    parser.add_argument(
        '--format', choices=['table', 'json'], default='table', help='what to print'
    )
    parser.add_argument('--json', type=Path, metavar='FILE', help='also write JSON to this file')
    parser.add_argument('--overwrite', action='store_true', help='replace that file if it exists')
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    args = parse_args(arguments)
    return exit_status(lambda: run(args))


def run(args: argparse.Namespace) -> None:
    """Count and print.

    Raises:
        UserError: if the model is unknown, the shape impossible, or the file cannot be written.
    """
    if args.json:
        check_new(args.json, args.overwrite)
    try:
        found = measure(build(args.model), tuple(args.shape))
    except (MemoryError, RuntimeError) as error:
        height, width = args.shape
        raise UserError(f'{args.model} cannot be run at {height}x{width}: {error}') from error
    text = json.dumps({'model': args.model, **found.to_dict()}, indent=2)
    if args.json:
        with written_whole(args.json) as partial:
            partial.write_text(text + '\n', encoding='utf-8')
    print(text if args.format == 'json' else found.to_table())


if __name__ == '__main__':
    sys.exit(main())
