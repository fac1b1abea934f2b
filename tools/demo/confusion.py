"""Draw the confusion matrix of a classifier next to its most confident mistakes."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from PIL import Image

from ptnt_mm.drawing.figures import FAINT, INK, save_figure
from ptnt_mm.inference.results import FORMAT
from ptnt_mm.utils.errors import UserError

_MISTAKES = 9
"""Largest number of mistakes that are shown."""


class Guess(NamedTuple):
    """A picture, the class in its folder's name, and the predicted class."""

    file: str
    truth: str
    found: str
    score: float


def draw_confusion(predictions: Path, image_folder: Path, out_file: Path) -> Path:
    """Draw how often each class is predicted as each, and the mistakes with the highest scores.

    Args:
        predictions: Output of ``tools/infer.py`` for a folder with a folder for each class.
        image_folder: That folder.
        out_file: The figure, a PNG.

    Returns:
        The path of the figure.

    Raises:
        UserError: if there are no predictions of a classifier, or if the figure cannot be written.
    """
    guesses = _read(predictions)
    names = sorted({name for guess in guesses for name in (guess.truth, guess.found)})
    places = {name: place for place, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)), int)
    for guess in guesses:
        counts[places[guess.truth], places[guess.found]] += 1
    figure = Figure(figsize=(11, 4.6))
    table, pictures = figure.add_gridspec(
        1, 2, width_ratios=(1, 1.5), left=0.08, right=0.985, top=0.83, bottom=0.09, wspace=0.12
    )
    share = 100 * counts.trace() / len(guesses)
    title = f'{share:.1f} % of {len(guesses)} pictures are right; the most confident mistakes'
    figure.text(0.02, 0.94, title, fontsize=12, color=INK, weight='bold')
    _draw_table(figure.add_subplot(table), counts, names)
    mistakes = sorted((g for g in guesses if g.found != g.truth), key=lambda g: -g.score)
    _draw_mistakes(figure, pictures, mistakes[:_MISTAKES], image_folder)
    return save_figure(figure, out_file)


def _read(predictions: Path) -> list[Guess]:
    try:
        content = json.loads(predictions.read_text(encoding='utf-8'))
        if content['format'] != FORMAT:
            raise KeyError
        guesses = [
            Guess(
                image['file'],
                Path(image['file']).parts[0],
                image['classes'][0]['label'],
                image['classes'][0]['score'],
            )
            for image in content['images']
        ]
    except OSError as error:
        raise UserError(f'{predictions} cannot be read: {error.strerror}') from error
    except (ValueError, KeyError, TypeError, IndexError):
        guesses = []
    if not guesses:
        raise UserError(f'{predictions} contains no predictions of a classifier by tools/infer.py')
    return guesses


def _draw_table(axes: Axes, counts: np.ndarray, names: Sequence[str]) -> None:
    """Draw the counts, (truth, found), on a shade for their share of the truth's pictures."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap='Blues', vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(counts):
        tone = 'white' if shares[row, column] > 0.5 else INK
        axes.text(column, row, str(count), color=tone, ha='center', va='center', fontsize=12)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel('found', color=FAINT)
    axes.set_ylabel('truth', color=FAINT)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _draw_mistakes(
    figure: Figure, place: SubplotSpec, mistakes: Sequence[Guess], image_folder: Path
) -> None:
    side = max(1, math.ceil(math.sqrt(len(mistakes))))
    grid = place.subgridspec(side, side, hspace=0.25, wspace=0.1)
    for cell, guess in zip(grid, mistakes, strict=False):
        axes = figure.add_subplot(cell)
        try:
            with Image.open(image_folder / guess.file) as image:
                axes.imshow(image.convert('RGB'))
        except OSError as error:
            raise UserError(f'{image_folder / guess.file} cannot be read: {error}') from error
        heading = f'{guess.truth}, as {guess.found} {100 * guess.score:.0f} %'
        axes.set_title(heading, fontsize=7.5, color=FAINT, pad=2.5)
        axes.set_axis_off()
