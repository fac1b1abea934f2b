"""Draw what a network sees: feature maps, words, attention and position tables, as one HTML page.

python tools/visualize.py configs/retinanet_ptnt_s_1x.py work_dirs/.../epoch_12.pth photo.jpg
"""

import argparse
import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from mmengine.config import Config
from rich.console import Console
from rich.progress import track

from ptnt_mm.checkpoints.read import refuse_forced_unsafe_loading
from ptnt_mm.cli.arguments import Parser, add_config, resolved, whole
from ptnt_mm.engine.config import read_config
from ptnt_mm.inference.images import FORMATS, read_image
from ptnt_mm.inference.network import Network, load_network
from ptnt_mm.inference.network_figures import SECTIONS, Scene
from ptnt_mm.inference.recording import find_trunk
from ptnt_mm.utils.errors import UserError
from ptnt_mm.visualization.figure_page import MARK, ShownFigure, ShownImage, write_page
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
    longer_side: int | None
    overwrite: bool
    device: str | None


def visualize(
    networks: Sequence[tuple[Config, str | None]],
    images: Sequence[Path],
    out: Path | None = None,
    *,
    query: tuple[float, float] | None = None,
    channels: Sequence[int] = (),
    longer_side: int | None = None,
    overwrite: bool = False,
    device: str | None = None,
) -> Path:
    """Draw what networks see in images, as ``tools/visualize.py`` does.

    Args:
        networks: One or two: a whole config and what training saved, or None for the weights that
            its backbone starts from. See ``load_network``.
        images: Image files.
        out: The folder of the page; ``work_dirs/visualize/<config>`` by default.
        query: A pixel (x, y) of the sentence whose attention is shown; by default the middle.
        channels: Those to show; by default the ones that vary most.
        longer_side: Images are resized to it first, in pixels; None leaves them as they are.
        overwrite: Replace the page of an earlier run.
        device: Such as 'cpu' or 'cuda:1'; None for the best that is there.

    Returns:
        The HTML page; figures lie in folders beside it.

    Raises:
        UserError: for everything that the user can mend.
    """
    refuse_forced_unsafe_loading()
    if importlib.util.find_spec('sklearn') is None:
        raise UserError('scikit-learn is not installed: pip install scikit-learn')
    config_name = Path(networks[0][0].filename or 'model').stem
    page = (out or Path('work_dirs', 'visualize', config_name)) / 'index.html'
    if page.exists() and not (overwrite and MARK in page.read_text(encoding='utf-8')):
        raise UserError(f'{page} exists: choose another --out, or give --overwrite')
    pictures = {file: _read(file, longer_side) for file in images}
    loaded = [load_network(config, checkpoint, device) for config, checkpoint in networks]
    labels = 'AB' if len(loaded) > 1 else ['']
    shown = []
    for number, (file, image) in enumerate(pictures.items(), start=1):
        height, width = image.shape[:2]
        place = query or (width / 2, height / 2)
        if not (0 <= place[0] < width and 0 <= place[1] < height):
            raise UserError(
                f'--query {place[0]:g} {place[1]:g}: {file} has {width}x{height} pixels'
            )
        seen = {label: network.look(image) for label, network in zip(labels, loaded, strict=True)}
        scene = Scene(image[..., ::-1], seen, place, channels)
        figures = list(_draw(scene, page.parent, f'{number}_{file.stem}'))
        shown.append(ShownImage(f'{file.name}, {width} x {height} pixels', figures))
    write_page(page, f'What {config_name} sees', _facts(networks, loaded, labels), shown)
    return page


def _read(file: Path, longer_side: int | None) -> np.ndarray:
    """An image, (H, W, 3) uint8, BGR."""
    if not file.is_file():
        raise UserError(f'there is no image {file}')
    try:
        image = read_image(file)
    except UserError as error:
        raise UserError(f'{file} {error}') from error
    if longer_side is None:
        return image
    scale = longer_side / max(image.shape)
    return cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)


def _draw(scene: Scene, out: Path, folder: str) -> Iterator[ShownFigure]:
    """Draw all figures of an image."""
    for section in track(SECTIONS, folder, console=Console(stderr=True)):
        rows, file = section.rows(scene), f'{folder}/{section.file}.png'
        if rows:
            save(
                draw_rows(section.title, rows, scene.image.shape[1] / scene.image.shape[0]),
                out / file,
            )
        yield ShownFigure(
            section.title, section.text if rows else section.absent, file * bool(rows)
        )


def _facts(
    networks: Sequence[tuple[Config, str | None]], loaded: Sequence[Network], labels: Sequence[str]
) -> Iterator[tuple[str, str]]:
    for label, (config, _), network in zip(labels, networks, loaded, strict=True):
        trunk = find_trunk(network.model) or network.model.backbone
        yield f'Config {label}', config.filename or 'a config without a file'
        yield f'Weights {label}', network.weights
        yield f'Backbone {label}', type(trunk).__name__


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
        metavar='CONFIG|CHECKPOINT',
        help='compare with another checkpoint, another config, or another config and its checkpoint',
    )
    parser.add_argument(
        '--query',
        type=float,
        nargs=2,
        metavar=('X', 'Y'),
        help='a pixel: whose attention to show; the middle by default',
    )
    parser.add_argument(
        '--channels', type=int, nargs='+', default=(), metavar='C', help='the channels to show'
    )
    parser.add_argument(
        '--longer-side', type=whole, metavar='PIXELS', help='resize images to this first'
    )
    parser.add_argument(
        '--out', type=Path, metavar='DIR', help='work_dirs/visualize/CONFIG by default'
    )
    parser.add_argument('--overwrite', action='store_true', help='replace an earlier page')
    parser.add_argument('--device', help='cpu, cuda or cuda:1; by default the best there is')
    return parser


def _resolve(args: argparse.Namespace) -> VisualizeArguments:
    """Tell the checkpoint from the images, and read the configs."""
    checkpoint, *images = [None, *args.files] if _is_image(args.files[0]) else args.files
    if not images:
        raise UserError(f'{checkpoint} is the checkpoint: name at least one image, too')
    networks = [(read_config(args.config, args.cfg_options), checkpoint)]
    match args.versus:
        case [str(other)] if other.endswith('.py') or other in config_names():
            networks.append((read_config(other), None))
        case [str(other)]:
            networks.append((read_config(args.config, args.cfg_options), other))
        case [str(config), str(other)]:
            networks.append((read_config(config), other))
        case [_, *_]:
            raise UserError('--versus takes a checkpoint, a config, or a config and its checkpoint')
    return resolved(VisualizeArguments, args, networks=networks, images=[*map(Path, images)])


def _is_image(file: str) -> bool:
    return Path(file).suffix.lower() in FORMATS


def _run(arguments: VisualizeArguments) -> None:
    print(f'Page: {visualize(**vars(arguments))}')
