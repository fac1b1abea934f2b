"""Draw COCO polygons and run lengths as masks for a segmenter: palette PNGs of class indices.

python tools/masks_from_coco.py instances_train.json data/custom_seg/masks/train
python tools/masks_from_coco.py instances_val.json data/custom_seg/masks/val --classes ball cup
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.data.coco_masks import write_masks
from ptnt_mm.utils.errors import exit_status
from ptnt_mm.utils.progress import watched


def parse_args(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = Parser(__doc__)
    parser.add_argument('annotations', type=Path, help='annotation file in COCO format')
    parser.add_argument('folder', type=Path, help='where to write the masks, named like the images')
    parser.add_argument(
        '--classes',
        nargs='+',
        metavar='NAME',
        help='all categories in index order, from 1 (default: the order in the file)',
    )
    parser.add_argument(
        '--overwrite',
        action='store_true',
        help='replace the folder if it holds only masks drawn by this tool',
    )
    return parser.parse_args(arguments)


def draw_masks(args: argparse.Namespace) -> None:
    """Write the masks, and print the class names for a config.

    Raises:
        UserError: if the annotations cannot be drawn, or the folder cannot be written.
    """
    progress = partial(watched, title='Drawing masks')
    names = write_masks(args.annotations, args.folder, args.classes, args.overwrite, progress)
    print(f'{args.folder} holds the masks. For configs/custom_seg.py:\nclasses = {names!r}')


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    args = parse_args(arguments)
    return exit_status(lambda: draw_masks(args))


if __name__ == '__main__':
    sys.exit(main())
