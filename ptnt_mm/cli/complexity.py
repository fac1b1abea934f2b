"""Count the parameters and multiply-adds of an arch or a config's model, part by part.

Examples:
    python tools/complexity.py small --shape 256 256
    python tools/complexity.py tnt_small --shape 224 224
    python tools/complexity.py configs/retinanet_ptnt_s_1x.py --shape 800 1280 --json cost.json
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.engine.complexity import ARCH_NAMES, build, measure
from ptnt_mm.utils.atomic_files import check_new, write_whole
from ptnt_mm.utils.errors import UserError


@dataclass(frozen=True)
class ComplexityArguments:
    """The command line, resolved; the shape is height and width in pixels."""

    model: str
    shape: tuple[int, int]
    format: str
    json: Path | None
    overwrite: bool


def main(words: list[str] | None = None) -> int:
    """Count what the command line names; the exit status."""
    return _parser().run(lambda args: _run(_resolve(args)), words)


def _parser() -> Parser:
    parser = Parser(__doc__)
    archs = ', '.join(ARCH_NAMES)
    parser.add_argument('model', help=f'{archs}, a config file or a config name')
    parser.add_argument(
        '--shape', type=int, nargs=2, required=True, metavar=('H', 'W'), help='image size in pixels'
    )
    parser.add_argument(
        '--format', choices=['table', 'json'], default='table', help='what to print'
    )
    parser.add_argument('--json', type=Path, metavar='FILE', help='also write JSON to this file')
    parser.add_argument('--overwrite', action='store_true', help='replace that file if it exists')
    return parser


def _resolve(args: argparse.Namespace) -> ComplexityArguments:
    return ComplexityArguments(**vars(args) | dict(shape=tuple(args.shape)))


def _run(arguments: ComplexityArguments) -> None:
    """Count and print."""
    model, file = arguments.model, arguments.json
    if file:
        check_new(file, arguments.overwrite)
    try:
        found = measure(build(model), arguments.shape)
    except (MemoryError, RuntimeError) as error:
        height, width = arguments.shape
        raise UserError(f'{model} cannot be run at {height}x{width}: {error}') from error
    text = json.dumps({'model': model, **found.to_dict()}, indent=2)
    if file:
        write_whole(file, text + '\n')
    print(text if arguments.format == 'json' else found.to_table())
