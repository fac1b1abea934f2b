"""Cut the objects of the demo set out, for a classifier: a folder of pictures for each class."""

import argparse
import sys
from pathlib import Path

PTNT_MM_REGISTERS_LATER = __name__ == '__main__'  # help does not wait for torch

from demo.crops import make_crops
from ptnt_mm.workbench.cli.start import Parser


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('demo', nargs='?', type=Path, default=Path('data/demo'))
    parser.add_argument('folder', nargs='?', type=Path, default=Path('data/demo_cls'))
    parser.add_argument(
        '--overwrite', action='store_true', help='replace the crops of another demo set'
    )
    return parser.run(_make_crops, words)


def _make_crops(args: argparse.Namespace) -> None:
    print(make_crops(args.demo, args.folder, args.overwrite))


if __name__ == '__main__':
    sys.exit(main())
