"""Draw what a network sees: feature maps, words, attention and position tables, as one HTML page.

ptnt visualize configs/retinanet_ptnt_s_1x.py work_dirs/.../epoch_12.pth photo.jpg
"""

import argparse
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
from mmengine.config import Config
from rich.console import Console
from rich.progress import track

from ptnt_mm.checkpoints.read import refuse_forced_unsafe_loading
from ptnt_mm.cli.arguments import Parser, add_config, resolved
from ptnt_mm.engine.config import read_config
from ptnt_mm.inference.images import drawn_name, read_image
from ptnt_mm.inference.network import load_network
from ptnt_mm.inference.network_figures import SECTIONS, Scene
from ptnt_mm.inference.recording import Recording
from ptnt_mm.utils.errors import UserError
from ptnt_mm.visualization.figures import save_figure
from ptnt_mm.visualization.page import write_page
from ptnt_mm.visualization.panels import draw_rows
from ptnt_mm.zoo import config_names

_MARK = '<meta name="generator" content="ptnt_mm visualize">'
"""In each of these pages: one may replace another."""

_FIGURE = re.compile(r'\d+_[^/]+/\w+\.png')


class Entry(NamedTuple):
    """A heading of the page, a text and perhaps a figure, by its path from the page."""

    title: str
    text: str
    figure: str = ''


@dataclass(frozen=True)
class VisualizeArguments:
    """What :func:`visualize` takes: the command line, resolved."""

    networks: Sequence[tuple[Config, str | None]]
    """One, or two to compare: a config, and a checkpoint or None, see ``load_network``."""

    images: Sequence[Path]

    out: Path | None = None
    """The folder of the page; ``work_dirs/visualize/<config>`` by default."""

    query: tuple[float, float] | None = None
    """A pixel (x, y) of the sentence whose attention is shown; by default the middle."""

    channels: Sequence[int] = ()
    """Those to show, counted from 0; by default the ones that vary most."""

    overwrite: bool = False
    device: str | None = None


def visualize(arguments: VisualizeArguments) -> Path:
    """Draw what networks see in images; the HTML page, beside which the figures lie.

    Raises:
        UserError: for everything that the user can mend.
    """
    refuse_forced_unsafe_loading()
    if find_spec('sklearn') is None:
        raise UserError('ptnt visualize needs scikit-learn: pip install scikit-learn')
    networks, query = arguments.networks, arguments.query
    name = Path(networks[0][0].filename or 'model').stem
    page = (arguments.out or Path('work_dirs', 'visualize', name)) / 'index.html'
    if page.exists() and _MARK not in page.read_text(errors='replace'):
        raise UserError(f'{page} exists and is not a page of ptnt visualize: choose another --out')
    if page.exists() and not arguments.overwrite:
        raise UserError(f'{page} exists: choose another --out, or give --overwrite')
    images = {file: _read(file, query) for file in arguments.images}
    loaded = [load_network(*network, arguments.device) for network in networks]
    labels = 'AB' if len(loaded) > 1 else ['']
    entries = [
        Entry(f'Network {label}'.strip(), f'{config.filename}, weights: {network.weights}')
        for label, (config, _), network in zip(labels, networks, loaded, strict=True)
    ]
    for number, (file, image) in enumerate(images.items(), start=1):
        height, width = image.shape[:2]
        recordings = dict(zip(labels, (network.look(image) for network in loaded), strict=True))
        _check_channels(arguments.channels, recordings.values())
        middle = (width / 2, height / 2)
        scene = Scene(image[..., ::-1], recordings, query or middle, arguments.channels)
        entries.append(Entry(str(file), f'{width} x {height} pixels'))
        entries += _draw(scene, page.parent, f'{number}_{file.stem}')
    outdated = _figures_of(page) - {entry.figure for entry in entries}
    title = f'What {name} sees'
    write_page('figures.html', page, title=title, mark=_MARK, entries=entries)
    for figure in outdated:
        (page.parent / figure).unlink(missing_ok=True)
        with suppress(OSError):
            # Not empty: it holds figures of this page, or files of others.
            (page.parent / figure).parent.rmdir()
    return page


def _figures_of(page: Path) -> set[str]:
    """The figures that a page shows, by their paths from it; none if there is no page."""
    text = page.read_text(errors='replace') if page.exists() else ''
    figures = map(unquote, re.findall(r'<img src="([^"]+)"', text))
    # Whatever was written into the page since: only names that `_draw` gives are removed.
    return {figure for figure in figures if _FIGURE.fullmatch(figure)}


def _read(file: Path, query: tuple[float, float] | None) -> np.ndarray:
    """An image (H, W, 3) uint8, BGR, with the queried pixel in it."""
    image = read_image(file)
    height, width = image.shape[:2]
    if query and not (0 <= query[0] < width and 0 <= query[1] < height):
        raise UserError(f'--query {query[0]:g} {query[1]:g}: {file} has {width} x {height} pixels')
    return image


def _check_channels(channels: Sequence[int], recordings: Iterable[Recording]) -> None:
    most = max(len(level.feature) for seen in recordings for level in seen.stages())
    for channel in channels:
        if not 0 <= channel < most:
            raise UserError(f'--channels {channel}: expected numbers from 0 to {most - 1}')


def _draw(scene: Scene, out: Path, folder: str) -> Iterator[Entry]:
    """Draw the figures of an image."""
    for section in track(SECTIONS, folder, console=Console(stderr=True)):
        rows, file = section.rows(scene), f'{folder}/{section.name}.png'
        if rows:
            save_figure(draw_rows(section.title, rows), out / file)
            yield Entry(section.title, section.text, file)
        else:
            yield Entry(section.title, 'There are none in this network.')


def main(words: list[str] | None = None) -> int:
    """Draw what the command line names; the exit status."""
    return _parser().run(lambda args: print(f'Page: {visualize(_resolve(args))}'), words)


def _parser() -> Parser:
    parser = Parser(__doc__)
    add_config(parser)
    parser.add_argument(
        'files', nargs='+', metavar='[CHECKPOINT] IMAGE', help='what training saved, and images'
    )
    parser.add_argument(
        '--versus',
        nargs='+',
        metavar='OTHER',
        help='compare: another checkpoint, another config, or a config and its checkpoint',
    )
    parser.add_argument(
        '--query',
        type=float,
        nargs=2,
        metavar=('X', 'Y'),
        help='a pixel of the sentence whose attention is shown; the middle by default',
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
        raise UserError(f'{checkpoint} is not an image: name one behind it')
    return resolved(VisualizeArguments, args, networks=networks, images=[*map(Path, files)])
