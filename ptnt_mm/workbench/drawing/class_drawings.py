"""Draw predicted classes: names with their scores, and maps in the colours of the classes."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.model import is_model_wrapper
from PIL import Image, ImageDraw

from ptnt_mm.utils.colours import ink_on, palette_of
from ptnt_mm.workbench.drawing.letters import SMALLEST_LETTERS, font_of, letter_size

_BEST = 5  # classes listed for a classifier, as for the top-5 accuracy of papers

_PLACES = 512  # maps are reduced to this many pixels on the longer side to find places for names

_SMALLEST_SIDE = 256  # pixels of an image that lines are written on
_LARGEST_SIDE = 4096  # of an image that was enlarged more than twice for them


def class_name(classes: Sequence[str] | None, label: int) -> str:
    """The name of a class, or its number without one."""
    return classes[label] if label < len(classes or ()) else f'class {label}'


def predicts_several(model: Any) -> bool:
    """Whether a classifier's head predicts any number of classes: it is multi-label."""
    if is_model_wrapper(model):
        model = model.module
    head = getattr(model, 'head', None)
    if head is None:
        return False
    from mmpretrain.models.heads import MultiLabelClsHead

    return isinstance(head, MultiLabelClsHead)


def shown_classes(
    sample: Any, score_thr: float = 0.0, several: bool = False
) -> list[tuple[int, float]]:
    """The classes to show of a classified image: indices and scores, the best first.

    They are the best five; for a multi-label head exactly those that it predicted, perhaps none.

    Args:
        sample: A sample of mmpretrain with ``pred_score``, (classes,), and ``pred_label``.
        score_thr: The lowest score.
        several: Whether the head :func:`predicts_several`. A sample with none or two, say, is from
            such a head in any case.
    """
    scores = sample.pred_score.cpu()
    order = scores.argsort(descending=True, stable=True).tolist()
    predicted = sample.get('pred_label')
    if predicted is not None and (several or len(predicted) != 1):
        predicted = set(predicted.tolist())
        shown = [index for index in order if index in predicted]
    else:
        shown = order[:_BEST]
    return [(i, score) for i in shown if (score := float(scores[i])) >= score_thr]


def write_labels(
    image: np.ndarray,
    sample: Any,
    names: Sequence[str] | None,
    score_thr: float = 0.0,
    several: bool = False,
) -> np.ndarray:
    """Write a classified image's true classes on it, then the predicted ones with probabilities.

    Args:
        image: (h, w, 3) uint8, BGR.
        sample: As for :func:`shown_classes`; optionally with ``gt_label``.
        names: Names of the classes.
        score_thr: The lowest score that is drawn.
        several: As for :func:`shown_classes`.

    Returns:
        (H, W, 3) uint8, BGR; small images grow.
    """
    true = sample.get('gt_label', torch.tensor([])).tolist()
    lines = [f'truth: {class_name(names, label)}' for label in true]
    shown = shown_classes(sample, score_thr, several)
    lines += [f'{class_name(names, index)} {score:.3f}' for index, score in shown]
    return write_lines(image, lines)


def paint_map(image: np.ndarray, labels: np.ndarray, dataset_meta: dict, number: int) -> np.ndarray:
    """Tint every pixel in the colour of its class, and write class names where there is room.

    Args:
        image: (H, W, 3) uint8, BGR.
        labels: (H, W), the class of each pixel. Pixels with a different value, such as 255 for
            ignored pixels, are not tinted.
        dataset_meta: The names and colours of the classes, as ``find_classes`` returns them.
        number: Number of classes. Classes without a colour get a generated one.

    Returns:
        (H, W, 3) uint8, BGR.
    """
    # A segmenter with one output channel separates two classes.
    colours = np.array(palette_of(dataset_meta, max(number, 2)), dtype=np.uint8)
    known = np.clip(labels, 0, len(colours) - 1)
    layer = np.ascontiguousarray(colours[known][..., ::-1])
    others = known != labels
    layer[others] = image[others]
    tinted = cv2.addWeighted(image, 0.5, layer, 0.5, 0)
    return draw_names(tinted, labels, partial(class_name, dataset_meta['classes']), colours)


def draw_names(
    image: np.ndarray, labels: np.ndarray, name: Callable[[int], str], colours: np.ndarray
) -> np.ndarray:
    """Write each class's name where its region is widest, if a letter fits in there.

    Args:
        image: (H, W, 3) uint8, BGR.
        labels: (H, W), the class of each pixel. Classes without a colour get no name.
        name: Maps a class index to its name.
        colours: (classes, 3) uint8, RGB.

    Returns:
        (H, W, 3) uint8, BGR.
    """
    # mmseg's visualizer sorts the coordinates of all pixels as a Python list, which takes minutes
    # and many GB for a photograph.
    picture = Image.fromarray(np.ascontiguousarray(image[..., ::-1]))
    pen, font = ImageDraw.Draw(picture), font_of(letter_size(picture.size))
    for label, (x, y) in _places(labels, font.size, len(colours)):
        text, colour = name(label), colours[label]
        half = pen.textlength(text, font) / 2
        # Keep the name inside the picture.
        x = min(max(x, half), max(labels.shape[1] - half, half))
        left, top, right, bottom = pen.textbbox((x, y), text, font, anchor='mm')
        pen.rectangle((left - 2, top - 2, right + 2, bottom + 2), tuple(colour.tolist()))
        pen.text((x, y), text, ink_on(colour), font, anchor='mm')
    return np.asarray(picture)[..., ::-1]


def write_lines(image: np.ndarray, lines: Sequence[str]) -> np.ndarray:
    """Write lines of text on an image, perhaps enlarged: (h, w, 3) -> (H, W, 3), uint8, BGR.

    Where they have no room, they become smaller and stand in columns; the last line counts those
    that are still left out.
    """
    picture = Image.fromarray(np.ascontiguousarray(image[..., ::-1]))
    most = max(2, _LARGEST_SIDE // max(picture.size))
    factor = min(-(-_SMALLEST_SIDE // min(picture.size)), most)
    picture = picture.resize((picture.width * factor, picture.height * factor))
    size = letter_size(picture.size)
    columns, left_out = _columns(lines, size, picture.size)
    while left_out and size > SMALLEST_LETTERS:
        size = max(SMALLEST_LETTERS, size * 3 // 4)
        columns, left_out = _columns(lines, size, picture.size)
    if left_out:
        columns[-1][1][-1] = f'and {left_out + 1} more'
    pen, font, height = ImageDraw.Draw(picture), font_of(size), size * 3 // 2
    for left, column in columns:
        for i, line in enumerate(column):
            right = left + font.getlength(line) + 2 * (size // 2)
            pen.rectangle((left, i * height, right, (i + 1) * height), 'black')
            middle = left + size // 2, (i + 0.5) * height
            pen.text(middle, line, 'white', font, anchor='lm')
    return np.asarray(picture)[..., ::-1]


def _columns(
    lines: Sequence[str], size: int, room: tuple[int, int]
) -> tuple[list[tuple[float, list[str]]], int]:
    """Arrange lines in columns, each with its left side, and count those without room.

    ``size`` is that of letters and ``room`` the width and height, all in pixels.
    """
    rows = max(1, room[1] // (size * 3 // 2))
    columns, left = [], 0
    for first in range(0, len(lines), rows):
        column = list(lines[first : first + rows])
        width = max(map(font_of(size).getlength, column)) + size
        if columns and left + width > room[0]:
            return columns, len(lines) - first
        columns.append((left, column))
        left += width
    return columns, 0


def _places(labels: np.ndarray, letters: int, number: int) -> list[tuple[int, tuple[int, int]]]:
    """List classes with room for a name, each with its (x, y) farthest from other classes."""
    step = -(-max(labels.shape) // _PLACES)
    small = labels[::step, ::step]
    found = []
    present = np.unique(small)
    for label in present[(present >= 0) & (present < number)].tolist():
        # The border of the image counts as another class.
        mask = np.pad(small == label, 1).astype(np.uint8)
        distances = cv2.distanceTransform(mask, cv2.DIST_L2, 3)
        y, x = np.unravel_index(distances.argmax(), distances.shape)
        if 2 * distances[y, x] * step >= letters:
            found.append((label, (int(x - 1) * step, int(y - 1) * step)))
    return found
