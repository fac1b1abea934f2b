"""Visualise the features of networks for images, for ``ptnt visualize``."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from mmengine.config import Config

from ptnt_mm.config.hosts import HOSTS, scope_of
from ptnt_mm.config.read import PROJECT_CONFIG, require_keys
from ptnt_mm.engine.load_in_range import read_picture
from ptnt_mm.options import documented
from ptnt_mm.utils.decoding import type_and_shape
from ptnt_mm.utils.errors import UserError
from ptnt_mm.visualize.network import load_network
from ptnt_mm.visualize.page import GENERATOR, Question, write_network_page


@documented('visualize')
def visualize(
    networks: Sequence[tuple[Config, Path | str | None]],
    images: Sequence[Path | str],
    out: Path | str | None = None,
    *,
    at: tuple[float, float] | None = None,
    box: int | None = None,
    channels: Sequence[int] = (),
    score_thr: float | None = None,
    overwrite: bool = False,
    device: str | None = None,
) -> Path:
    """Visualise the features of networks for images as ``ptnt visualize`` does.

    Args:
        networks: One, or two to compare: each a complete config, and a checkpoint or None.
        images: Image files.

    Returns:
        The HTML page.

    Raises:
        UserError: for everything that the user can correct.
    """
    for image in images:
        if not isinstance(image, (str, Path)):
            raise UserError(f'expected image files, got {type_and_shape(image)}')
    if find_spec('sklearn') is None:
        raise UserError('ptnt visualize needs scikit-learn: pip install scikit-learn')
    for config, _ in networks:
        require_keys(config, ('model',))
    name = _name_of(networks[0][0])
    folder = Path('work_dirs', 'visualize', name) if out is None else Path(out)
    page = folder / 'index.html'
    _check_page(page, overwrite)
    _check_box(box, *networks[0])
    question = Question(at, box, channels)
    pixels = {file: read_picture(file, networks[0][0]) for file in map(Path, images)}
    for file, image in pixels.items():
        question.check_point(file, image)
    labels = 'AB' if len(networks) > 1 else ['']
    loaded = {
        label: load_network(config, checkpoint and str(checkpoint), device, score_thr)
        for label, (config, checkpoint) in zip(labels, networks, strict=True)
    }
    write_network_page(page, f'What {name} sees', loaded, pixels, question)
    return page


def _name_of(config: Config) -> str:
    """The name of a config's file, or of the folder of a project."""
    file = Path(config.filename or 'model').absolute()
    return file.parent.name if file.name == PROJECT_CONFIG else file.stem


def _check_page(page: Path, overwrite: bool) -> None:
    if page.exists() and f'content="{GENERATOR}"' not in page.read_text(errors='replace'):
        raise UserError(f'{page} exists and is not a page of ptnt visualize: choose another `out`')
    if page.exists() and not overwrite:
        raise UserError(f'{page} exists: choose another `out`, or pass `overwrite=True`')


def _check_box(box: int | None, config: Config, checkpoint: Path | str | None) -> None:
    """Raise a UserError if the network cannot predict boxes."""
    host = HOSTS.get(scope_of(config))
    if box is not None and (host is None or host.task != 'detection'):
        raise UserError(
            f'`box={box}`: {config.filename} is not a detector: choose a point with `at`'
        )
    if box is not None and checkpoint is None:
        raise UserError(f'`box={box}` needs a checkpoint: without training, no box is meaningful')
