"""Draw what a network sees: predictions, feature maps, words, attention and position tables.

ptnt visualize configs/retinanet_ptnt_s_1x.py work_dirs/.../epoch_12.pth photo.jpg --box 1
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from mmengine.config import Config

from ptnt_mm.checkpoints.read import refuse_forced_unsafe_loading
from ptnt_mm.cli.arguments import Parser, add_config, resolved, whole
from ptnt_mm.engine.config import read_config
from ptnt_mm.engine.hosts import HOSTS, scope_of
from ptnt_mm.inference.images import drawn_name, read_image
from ptnt_mm.inference.network import load_network
from ptnt_mm.inference.network_page import GENERATOR, Question, write_network_page
from ptnt_mm.utils.errors import UserError
from ptnt_mm.zoo import config_names


@dataclass(frozen=True)
class VisualizeArguments:
    """The command line, resolved: what :func:`visualize` takes."""

    networks: Sequence[tuple[Config, str | None]]
    """One, or two to compare: a config, and a checkpoint or None, see ``load_network``."""

    images: Sequence[Path]

    out: Path | None = None
    """The folder of the page; ``work_dirs/visualize/<config>`` by default."""

    at: tuple[float, float] | None = None
    """A pixel (x, y) whose attention and similarity are shown; the middle by default."""

    box: int | None = None
    """Instead of a pixel: the number of a detection of the first network, counted from 1."""

    channels: Sequence[int] = ()
    """Channels to show, counted from 0; by default those that vary most."""

    score_thr: float | None = None
    """The lowest score of a box or a class; by default that of ``ptnt infer``."""

    overwrite: bool = False
    device: str | None = None


def visualize(arguments: VisualizeArguments) -> Path:
    """Draw what networks see in images, and return the HTML page.

    Raises:
        UserError: for everything that the user can correct.
    """
    refuse_forced_unsafe_loading()
    if find_spec('sklearn') is None:
        raise UserError('ptnt visualize needs scikit-learn: pip install scikit-learn')
    networks = arguments.networks
    name = Path(networks[0][0].filename or 'model').stem
    page = (arguments.out or Path('work_dirs', 'visualize', name)) / 'index.html'
    _check_page(page, arguments.overwrite)
    _check_box(arguments.box, *networks[0])
    question = Question(arguments.at, arguments.box, arguments.channels)
    images = {file: read_image(file) for file in arguments.images}
    for file, image in images.items():
        question.check_point(file, image)
    loaded = {
        label: load_network(*network, arguments.device, arguments.score_thr)
        for label, network in zip('AB' if len(networks) > 1 else [''], networks, strict=True)
    }
    write_network_page(page, f'What {name} sees', loaded, images, question)
    return page


def _check_page(page: Path, overwrite: bool) -> None:
    if page.exists() and f'content="{GENERATOR}"' not in page.read_text(errors='replace'):
        raise UserError(f'{page} exists and is not a page of ptnt visualize: choose another --out')
    if page.exists() and not overwrite:
        raise UserError(f'{page} exists: choose another --out, or give --overwrite')


def _check_box(box: int | None, config: Config, checkpoint: str | None) -> None:
    """Raise a UserError if the network cannot have boxes."""
    host = HOSTS.get(scope_of(config))
    if box is not None and (host is None or host.task != 'detection'):
        raise UserError(f'--box {box}: {config.filename} is no detector: choose a point with --at')
    if box is not None and checkpoint is None:
        raise UserError(f'--box {box} needs a checkpoint: without training, no box is meaningful')


def main(words: list[str] | None = None) -> int:
    """Draw what the command line names; the exit status."""
    return _parser().run(lambda args: print(f'Page: {visualize(_resolve(args))}'), words)


def _parser() -> Parser:
    parser = Parser(__doc__)
    add_config(parser)
    parser.add_argument(
        'files', nargs='+', metavar='[CHECKPOINT] IMAGE', help='a training checkpoint, and images'
    )
    parser.add_argument(
        '--versus',
        nargs='+',
        metavar='OTHER',
        help='compare: another checkpoint, another config, or a config and its checkpoint',
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument(
        '--at',
        type=_point,
        metavar='X,Y',
        help='show similarity and attention for this pixel of the image; the middle by default',
    )
    place.add_argument(
        '--box', type=whole, metavar='N', help='show them for a detected box, by its number'
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
    parser.add_argument('--device', help='cpu, cuda or cuda:1; by default the best there is')
    return parser


def _point(text: str) -> tuple[float, float]:
    """Two numbers in a text such as '120,80'; argparse prints errors."""
    try:
        x, y = map(float, text.split(','))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f'{text!r} is not a pixel such as 120,80') from error
    return x, y


def _resolve(args: argparse.Namespace) -> VisualizeArguments:
    """Tell the checkpoint from the images, and read the configs."""
    first = Path(args.files[0])
    # Images keep their names when they are drawn.
    checkpoint, *files = [None, *args.files] if drawn_name(first) == first else args.files
    networks = [(read_config(args.config, args.cfg_options), checkpoint)]
    match args.versus or []:
        case [other] if other.endswith('.py') or other in config_names():
            networks.append((read_config(other), None))
        case [other]:
            networks.append((networks[0][0], other))
        case [config, other]:
            networks.append((read_config(config), other))
        case [_, *_]:
            raise UserError('--versus takes a checkpoint, a config, or a config and a checkpoint')
    if not files:
        raise UserError(f'{checkpoint} is not an image: name an image after it')
    return resolved(VisualizeArguments, args, networks=networks, images=[*map(Path, files)])
