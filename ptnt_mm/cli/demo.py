"""Create the demo data set: a few hundred pictures in COCO format, without a download.

ptnt demo
ptnt train demo_retinanet_ptnt_ti
"""

import argparse
from pathlib import Path

from ptnt_mm.cli.arguments import Parser, not_negative, positive
from ptnt_mm.cli.importing import importing


def main(words: list[str] | None = None) -> int:
    """Create the data set; return the exit status."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    parser.add_argument(
        'folder', nargs='?', type=Path, default=Path('data/demo'), help='data/demo by default'
    )
    parser.add_argument('--train', type=positive, help='training pictures: 240 by default')
    parser.add_argument('--val', type=positive, help='validation pictures: 60 by default')
    parser.add_argument(
        '--seed', type=not_negative, help='seed of every random choice: 0 by default'
    )
    parser.add_argument(
        '--overwrite',
        action='store_true',
        help='replace a demo data set made with other arguments, or changed since',
    )
    return parser


def _run(args: argparse.Namespace) -> None:
    with importing():
        from ptnt_mm.demo.dataset import DemoSpec, make_demo_data

    asked = dict(train=args.train, val=args.val, seed=args.seed)
    spec = DemoSpec(**{name: value for name, value in asked.items() if value is not None})
    print(make_demo_data(args.folder, spec, args.overwrite))
