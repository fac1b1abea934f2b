"""Draw a network's predictions, feature maps, words, attention and position tables.

ptnt visualize configs/retinanet_ptnt_s_1x.py work_dirs/.../epoch_12.pth photo.jpg --box 1
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ptnt_mm.cli.arguments import Parser, add_config, config_of, positive
from ptnt_mm.cli.importing import importing
from ptnt_mm.utils.errors import UserError

if TYPE_CHECKING:
    from mmengine.config import Config


def main(words: list[str] | None = None) -> int:
    """Draw a page; return the exit status."""
    return new_parser().run(_run, words)


def new_parser() -> Parser:
    """Create the argument parser."""
    parser = Parser(__doc__)
    add_config(parser)
    parser.add_argument(
        'files',
        nargs='+',
        metavar='[CHECKPOINT] IMAGE',
        help='a training checkpoint, by default the best one in the work dir, and images',
    )
    parser.add_argument(
        '--versus',
        nargs='+',
        metavar='OTHER',
        help='compare: a different checkpoint, a different config, or a config and its checkpoint',
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        '--at',
        type=_point,
        metavar='X,Y',
        help='show similarity and attention for this pixel of the image; the middle by default',
    )
    place.add_argument(
        '--box', type=positive, metavar='N', help='show them for a detected box, by its number'
    )
    parser.add_argument(
        '--score-thr', type=float, metavar='S', help='the lowest score of a box: 0.3 by default'
    )
    parser.add_argument(
        '--channels', type=int, nargs='+', default=(), metavar='C', help='to show, counted from 0'
    )
    parser.add_argument(
        '--out',
        type=Path,
        metavar='DIR',
        help='for the page: work_dirs/visualize/CONFIG by default',
    )
    parser.add_argument('--overwrite', action='store_true', help='replace an earlier page')
    parser.add_argument('--device', help='cpu, cuda or cuda:1; by default the best available')
    return parser


def _point(text: str) -> tuple[float, float]:
    """Two numbers from text such as '120,80'; argparse prints errors."""
    try:
        x, y = map(float, text.split(','))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'{text!r} is not a pixel such as 120,80') from error
    return x, y


def _run(args: argparse.Namespace) -> None:
    with importing():
        from ptnt_mm.engine.run_checkpoints import best_checkpoint
        from ptnt_mm.engine.work_dir import find_work_dir
        from ptnt_mm.utils.decoding import FORMATS
        from ptnt_mm.visualize.visualize import visualize

    checkpoint, images = None, args.files
    if Path(images[0]).suffix.lower() not in FORMATS:
        checkpoint, *images = images
    if not images:
        what = 'a folder: name its images' if Path(checkpoint).is_dir() else 'not an image: add one'
        raise UserError(f'{checkpoint} is {what}')
    config = config_of(args)
    if checkpoint is None:
        checkpoint = best_checkpoint(find_work_dir(config))
        print(f'Checkpoint: {checkpoint or "none; the page states the weights"}')
    page = visualize(
        [(config, checkpoint), *_others(args.versus or [], config)],
        [*map(Path, images)],
        args.out,
        at=args.at,
        box=args.box,
        channels=args.channels,
        score_thr=args.score_thr,
        overwrite=args.overwrite,
        device=args.device,
    )
    print(f'Page: {page}')


def _others(words: list[str], config: 'Config') -> list[tuple['Config', str | None]]:
    """Read the config, the checkpoint, or both to compare with."""
    from ptnt_mm.config.read import read_config
    from ptnt_mm.config.zoo import config_names

    match words:
        case []:
            return []
        case [other] if other.endswith('.py') or other in config_names():
            return [(read_config(other), None)]
        case [other]:
            return [(config, other)]
        case [other, checkpoint]:
            return [(read_config(other), checkpoint)]
    raise UserError('--versus takes a checkpoint, a config, or a config and a checkpoint')
