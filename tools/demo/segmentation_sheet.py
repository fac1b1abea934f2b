"""A contact sheet of a segmenter: class maps, ground truth beside predictions."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from demo.contact_sheet import Colour, Pair, check_request, draw_sheet, spread
from ptnt_mm.utils.errors import UserError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OPACITY = 0.6
_SUFFIX = '.png'


def draw_maps(
    image_folder: str | Path,
    truth_folder: str | Path,
    results_folder: str | Path,
    colours: Mapping[str, Colour],
    out_file: str | Path,
    num_images: int = 10,
) -> Path:
    """Draw class maps over pictures spread evenly over a data set.

    Args:
        image_folder: The pictures. Each has the name of its map, with its own file extension.
        truth_folder: Ground truth maps: PNGs whose pixels are class indices.
        results_folder: Predicted maps, as mmseg's IoUMetric writes them to ``output_dir``.
        colours: Class colours by name, in index order. Pixels with another index, such as 255, are
            not drawn and do not count.
        out_file: The figure, .png or another format that Matplotlib writes.
        num_images: The largest number of pictures to show.

    Returns:
        The path of the figure.

    Raises:
        UserError: if a folder or file is missing or of another kind, if a predicted map and its
            ground truth differ in size, or if the figure cannot be written.
    """
    out_file = Path(out_file)
    check_request(out_file, num_images)
    names = _names(Path(results_folder))
    pictures = {path.stem: path for path in sorted(Path(image_folder).glob('*')) if path.is_file()}
    tones = np.array(list(colours.values()))
    pairs = []
    for name in spread(names, num_images):
        if name not in pictures:
            raise UserError(f'{results_folder}/{name}{_SUFFIX} has no picture in {image_folder}.')
        truth = _read(Path(truth_folder, name + _SUFFIX))
        found = _read(Path(results_folder, name + _SUFFIX))
        if truth.shape != found.shape:
            raise UserError(f'{name}{_SUFFIX} is {_size(found)}, its ground truth {_size(truth)}.')
        pairs.append(
            Pair(
                pictures[name],
                partial(_draw_map, indices=truth, tones=tones),
                partial(_draw_map, indices=found, tones=tones),
                _share_right(truth, found, len(colours)),
            )
        )
    title = 'Ground truth beside predictions, with the share of correct pixels'
    return draw_sheet(pairs, title, colours, out_file)


def _names(folder: Path) -> list[str]:
    names = sorted(path.stem for path in folder.glob(f'*{_SUFFIX}'))
    if not names:
        raise UserError(
            f'{folder} holds no {_SUFFIX} maps: write them with tools/test.py --cfg-options '
            f'test_evaluator.output_dir={folder}'
        )
    return names


def _read(path: Path) -> np.ndarray:
    """Read a map of class indices, (height, width)."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            indices = np.asarray(image)
    except OSError as error:
        raise UserError(f'The map {path} cannot be read: {error}.') from error
    if indices.ndim != 2:
        raise UserError(f'{path} is not a map of indices: it has {indices.shape[2]} channels.')
    return indices


def _draw_map(axes: 'Axes', indices: np.ndarray, tones: np.ndarray) -> None:
    """Draw each class's colour over the picture."""
    known = indices < len(tones)
    tint = np.zeros((*indices.shape, 4))
    tint[known] = np.insert(tones, 3, _OPACITY, axis=1)[indices[known]]
    axes.imshow(tint, interpolation='nearest')


def _share_right(truth: np.ndarray, found: np.ndarray, num_classes: int) -> str:
    counts = truth < num_classes
    if not counts.any():
        return 'predictions'
    return f'predictions   {100 * (truth == found)[counts].mean():.1f} %'


def _size(indices: np.ndarray) -> str:
    return f'{indices.shape[1]}x{indices.shape[0]}'
