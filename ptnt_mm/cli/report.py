"""Write one page about training runs: curves, scores, errors and the worst images.

Examples:
    ptnt report work_dirs/demo
    ptnt report work_dirs/demo work_dirs/demo_masks --out compared.html
"""

import argparse
from pathlib import Path

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.cli.importing import importing


def main(words: list[str] | None = None) -> int:
    """Write a page; return the exit status."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    parser.add_argument(
        'work_dirs',
        nargs='+',
        type=Path,
        metavar='WORK_DIR',
        help='the --work-dir of a training run, or a project',
    )
    parser.add_argument(
        '--out', type=Path, metavar='FILE.html', help='the page: WORK_DIR/report.html by default'
    )
    parser.add_argument(
        '--overwrite', action='store_true', help='replace the file of --out if it exists'
    )
    return parser


def _run(args: argparse.Namespace) -> None:
    with importing():
        from ptnt_mm.report.report import report

    print(f'Done. Page: {report(args.work_dirs, args.out, args.overwrite)}')
