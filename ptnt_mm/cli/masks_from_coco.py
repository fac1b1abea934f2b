"""Draw COCO polygons and run lengths as masks for a segmenter: palette PNGs of class indices.

ptnt masks-from-coco instances_train.json data/custom_seg/masks/train
ptnt masks-from-coco instances_val.json data/custom_seg/masks/val --classes ball cup
"""

import argparse
from pathlib import Path

from ptnt_mm.cli.arguments import Parser
from ptnt_mm.data.coco_masks import write_masks


def main(words: list[str] | None = None) -> int:
    """Draw what the command line names; the exit status."""
    return _parser().run(_run, words)


def _parser() -> Parser:
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
    return parser


def _run(args: argparse.Namespace) -> None:
    """Write the masks, and print the class names for a config."""
    names = write_masks(**vars(args))
    print(f'{args.folder} holds the masks. For configs/custom_seg.py:\nclasses = {names!r}')
