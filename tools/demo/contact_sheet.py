"""A contact sheet: the ground truth of some pictures beside the predictions."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ptnt_mm.utils.errors import UserError
from ptnt_mm.visualization.figures import FAINT, INK, check_out_file, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PAIRS_PER_ROW = 2
_CELL_INCHES = (2.9, 2.25)
_HEAD_INCHES = 0.9

Colour = tuple[float, float, float]
"""RGB in [0, 1]."""


class Pair(NamedTuple):
    """A picture that is shown twice: with its ground truth and with its predictions.

    Attributes:
        file: The picture.
        draw_truth: Draws the ground truth over the picture.
        draw_found: Draws the predictions over the picture.
        found: The heading above the predictions.
    """

    file: Path
    draw_truth: Callable[['Axes'], None]
    draw_found: Callable[['Axes'], None]
    found: str = 'predictions'


def check_request(out_file: Path, num_images: int) -> None:
    """Check the arguments that all sheets share, before the work starts.

    Raises:
        UserError: if ``num_images`` is below 1, or Matplotlib cannot write the format.
    """
    check_out_file(out_file)
    if num_images < 1:
        raise UserError(f'num_images is {num_images}; give 1 or more.')


def spread(pictures: Sequence[Any], num_images: int) -> list[Any]:
    """Choose ``num_images`` pictures, evenly spaced; all of them if there are no more."""
    if num_images >= len(pictures):
        return list(pictures)
    return [pictures[i] for i in np.linspace(0, len(pictures) - 1, num_images).astype(int)]


def draw_sheet(
    pairs: Sequence[Pair], title: str, legend: Mapping[str, Colour], out_file: Path
) -> Path:
    """Draw pairs of pictures, with a title and a legend of class colours above them.

    Returns:
        The path of the figure.

    Raises:
        UserError: if a picture cannot be read, or the figure cannot be written.
    """
    from matplotlib.figure import Figure

    across = min(_PAIRS_PER_ROW, len(pairs))
    rows = -(-len(pairs) // across)
    width, height = 2 * across * _CELL_INCHES[0], rows * _CELL_INCHES[1] + _HEAD_INCHES
    figure = Figure(figsize=(width, height))
    grid = figure.add_gridspec(
        rows,
        # A narrow empty column separates the pairs.
        3 * across - 1,
        width_ratios=([1, 1, 0.06] * across)[:-1],
        left=0.012,
        right=0.988,
        top=1 - (_HEAD_INCHES - 0.05) / height,
        bottom=0.1 / height,
        wspace=0.03,
        hspace=0.13,
    )
    for index, pair in enumerate(pairs):
        row, column = divmod(index, across)
        pixels = _pixels(pair.file)
        truth = figure.add_subplot(grid[row, 3 * column])
        _show(truth, pixels, f'{pair.file.name}   ground truth')
        pair.draw_truth(truth)
        found = figure.add_subplot(grid[row, 3 * column + 1])
        _show(found, pixels, pair.found)
        pair.draw_found(found)
    _head(figure, title, legend, height)
    return save(figure, out_file)


def _pixels(path: Path) -> np.ndarray:
    from PIL import Image

    try:
        with Image.open(path) as image:
            return np.asarray(image.convert('RGB'))
    except OSError as error:
        raise UserError(
            f'The picture {path} cannot be read: {error}. Give the folder that the file names in '
            'the ground truth are relative to.'
        ) from error


def _show(axes: 'Axes', pixels: np.ndarray, title: str) -> None:
    axes.imshow(pixels, interpolation='lanczos')
    axes.set_axis_off()
    axes.set_title(title, fontsize=7.5, color=FAINT, pad=2.5, loc='left')


def _head(figure: 'Figure', title: str, legend: Mapping[str, Colour], height: float) -> None:
    """Draw the title and the legend."""
    from matplotlib.patches import Patch

    figure.text(
        0.012,
        1 - 0.28 / height,
        title,
        fontsize=12,
        color=INK,
        weight='bold',
        verticalalignment='center',
    )
    handles = [Patch(color=tone, label=name) for name, tone in legend.items()]
    figure.legend(
        handles=handles,
        loc='center left',
        bbox_to_anchor=(0.006, 1 - 0.56 / height),
        ncols=min(max(len(handles), 1), 10),
        frameon=False,
        fontsize=9,
        handlelength=1.1,
        handleheight=1.0,
        columnspacing=1.4,
    )
