"""Count the parameters and multiply-adds of an arch or a config's model, part by part.

Examples:
    ptnt complexity small --shape 256 256
    ptnt complexity tnt_small --shape 224 224
    ptnt complexity retinanet_ptnt_s_1x --shape 800 1280 --json cost.json
"""

import argparse
from pathlib import Path

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.cli.importing import importing
from ptnt_mm.cli.json_output import add_json, json_output
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.progress import waiting


def main(words: list[str] | None = None) -> int:
    """Count a model's operations; return the exit status."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    parser.add_argument(
        'model',
        help='tiny, small, medium or base (or ti, s, m, b), tnt_small, cpvt_small or another arch, '
        'a config file or a config name',
    )
    parser.add_argument(
        '--shape', type=int, nargs=2, required=True, metavar=('H', 'W'), help='image size in pixels'
    )
    parser.add_argument(
        '--format', choices=['table', 'json'], default='table', help='what to print'
    )
    add_json(parser)
    return parser


def _run(args: argparse.Namespace) -> None:
    with importing():
        from ptnt_mm.complexity import build_by_name, measure_complexity

    printed = json_output(Path('-') if args.format == 'json' else None, overwrite=False)
    with printed as print_json, json_output(args.json, args.overwrite) as write:
        try:
            with waiting('Counting'):
                found = measure_complexity(build_by_name(args.model), tuple(args.shape))
        except (MemoryError, RuntimeError, ValueError) as error:
            size = 'x'.join(map(str, args.shape))
            raise UserError(f'{args.model} cannot be run at {size}: {error}') from error
        results = {'model': args.model, **found.to_dict()}
        if args.format == 'table':
            print(found.to_table())
        print_json(results)
        write(results)
