"""Draw what a network sees: feature maps, words, attention and position tables, as one HTML page.

python tools/visualize.py configs/retinanet_ptnt_s_1x.py work_dirs/.../epoch_12.pth photo.jpg
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

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
from ptnt_mm.utils.errors import UserError
from ptnt_mm.visualization.figure_page import MARK, Part, write_page
from ptnt_mm.visualization.figures import save
from ptnt_mm.visualization.panels import draw_rows
from ptnt_mm.zoo import config_names


@dataclass(frozen=True)
class VisualizeArguments:
    """The command line, resolved: what :func:`visualize` takes."""

    networks: Sequence[tuple[Config, str | None]]
    images: Sequence[Path]
    out: Path | None
    query: tuple[float, float] | None
    channels: Sequence[int]
    overwrite: bool
    device: str | None


def visualize(
    networks: Sequence[tuple[Config, str | None]],
    images: Sequence[Path],
    out: Path | None = None,
    *,
    query: tuple[float, float] | None = None,
    channels: Sequence[int] = (),
    overwrite: bool = False,
    device: str | None = None,
) -> Path:
    """Draw what networks see in images, as ``tools/visualize.py`` does.

    Args:
        networks: One, or two to compare: a config, and a checkpoint or None, see ``load_network``.
        images: Image files.
        out: The folder of the page; ``work_dirs/visualize/<config>`` by default.
        query: A pixel (x, y) of the sentence whose attention is shown; by default the middle.
        channels: Those to show; by default the ones that vary most.
        overwrite: Replace the page of an earlier run.
        device: Such as 'cpu' or 'cuda:1'; None for the best that is there.

    Returns:
        The HTML page; figures lie in folders beside it.

    Raises:
        UserError: for everything that the user can mend.
    """
    refuse_forced_unsafe_loading()
    if find_spec('sklearn') is None:
        raise UserError('tools/visualize.py needs scikit-learn: pip install scikit-learn')
    name = Path(networks[0][0].filename or 'model').stem
    page = (out or Path('work_dirs', 'visualize', name)) / 'index.html'
    if page.exists() and not (overwrite and MARK in page.read_text(encoding='utf-8')):
        raise UserError(f'{page} exists: choose another --out, or give --overwrite')
    pictures = [_read(file, query) for file in images]
    loaded = [load_network(*network, device) for network in networks]
    labels = 'AB' if len(loaded) > 1 else ['']
    parts = [
        Part(f'Network {label}', f'{config.filename}, weights: {network.weights}')
        for label, (config, _), network in zip(labels, networks, loaded, strict=True)
    ]
    for number, (file, image) in enumerate(zip(images, pictures, strict=True), start=1):
        height, width = image.shape[:2]
        seen = {label: network.look(image) for label, network in zip(labels, loaded, strict=True)}
        scene = Scene(image[..., ::-1], seen, query or (width / 2, height / 2), channels)
        parts.append(Part(str(file), f'{width} x {height} pixels'))
        parts += _draw(scene, page.parent, f'{number}_{file.stem}')
    write_page(page, f'What {name} sees', parts)
    return page


def _read(file: Path, query: tuple[float, float] | None) -> np.ndarray:
    """An image (H, W, 3) uint8, BGR, with the queried pixel in it."""
    try:
        image = read_image(file)
    except UserError as error:
        raise UserError(f'{file} {error}') from error
    height, width = image.shape[:2]
    if query and not (0 <= query[0] < width and 0 <= query[1] < height):
        raise UserError(f'--query {query[0]:g} {query[1]:g}: {file} has {width} x {height} pixels')
    return image


def _draw(scene: Scene, out: Path, folder: str) -> Iterator[Part]:
    """Draw the figures of an image."""
    height, width = scene.image.shape[:2]
    for section in track(SECTIONS, folder, console=Console(stderr=True)):
        rows, file = section.rows(scene), f'{folder}/{section.name}.png'
        if rows:
            save(draw_rows(section.title, rows, width / height), out / file)
            yield Part(section.title, section.text, file)
        else:
            yield Part(section.title, 'This network has nothing of the kind.')


def main(words: list[str] | None = None) -> int:
    """Draw what the command line names; the exit status."""
    return _parser().run(lambda args: _run(_resolve(args)), words)


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
        raise UserError(f'{checkpoint} is no image: name one behind it')
    return resolved(VisualizeArguments, args, networks=networks, images=[*map(Path, files)])


def _run(arguments: VisualizeArguments) -> None:
    print(f'Page: {visualize(**vars(arguments))}')
