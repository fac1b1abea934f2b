"""Count the parameters and multiply-adds of an arch, or of a config's model, part by part.

Examples:
    python tools/complexity.py small --shape 256 256
    python tools/complexity.py configs/retinanet_ptnt_s_1x.py --shape 800 1280 --json cost.json
"""

import argparse
import json
import os
import sys
from pathlib import Path

from ptnt_mm.complexity import build, measure
from ptnt_mm.errors import UserError


def parse_args(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('model', help='tiny, small, medium, base, a config file or its name')
    parser.add_argument(
        '--shape', type=int, nargs=2, required=True, metavar=('H', 'W'), help='image in pixels'
    )
    parser.add_argument('--format', choices=['table', 'json'], default='table', help='to print')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write JSON to this file too')
    parser.add_argument('--overwrite', action='store_true', help='if that file exists, replace it')
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    args = parse_args(arguments)
    try:
        if args.json:
            check_target(args.json, args.overwrite)
        found = measure(build(args.model), tuple(args.shape))
        text = json.dumps({'model': args.model, **found.to_dict()}, indent=2)
        if args.json:
            write(args.json, text + '\n')
    except UserError as error:
        print(f'error: {error}', file=sys.stderr)
        return 1
    print(text if args.format == 'json' else found.to_table())
    return 0


def check_target(file: Path, overwrite: bool) -> None:
    """Find out before the counting whether its result can be written.

    Raises:
        UserError: if the file exists and may not be replaced, or its folder does not exist.
    """
    if file.exists() and not overwrite:
        raise UserError(f'{file} exists: choose another file, or give --overwrite')
    if not file.parent.is_dir():
        raise UserError(f'{file} cannot be written: there is no folder {file.parent}')


def write(file: Path, text: str) -> None:
    """Write a text under its name only when it is whole.

    Raises:
        UserError: if the system refuses.
    """
    partial = file.with_name(f'.{file.name}.partial-{os.getpid()}')
    try:
        partial.write_text(text, encoding='utf-8')
        os.replace(partial, file)
    except OSError as error:
        raise UserError(f'{file} cannot be written: {error.strerror}') from error
    finally:
        partial.unlink(missing_ok=True)


if __name__ == '__main__':
    sys.exit(main())
