"""Draw predicted classes: names with their scores, and maps in the colours of the classes."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from ptnt_mm.utils.colours import palette_of

_BEST = 5  # classes listed for a classifier, as for the top-5 accuracy of papers

_PLACES = 512
"""Maps are reduced to this many pixels on the longer side to find places for names."""

_LETTERS_PER_SIDE = 40
_SMALLEST_LETTERS = 10

_SMALLEST_SIDE = 256  # pixels of an image that lines are written on


def class_name(classes: Sequence[str] | None, label: int) -> str:
    """The name of a class, or its number without one."""
    return classes[label] if label < len(classes or ()) else f'class {label}'


def best_classes(scores: Tensor, score_thr: float = 0.0) -> list[tuple[int, float]]:
    """The five best of scores (classes,) that are high enough: indices and scores, best first."""
    best = scores.cpu().sort(descending=True, stable=True)
    found = zip(best.indices[:_BEST].tolist(), best.values[:_BEST].tolist(), strict=True)
    return [(index, score) for index, score in found if score >= score_thr]


def write_labels(
    image: np.ndarray, sample: Any, names: Sequence[str] | None, score_thr: float = 0.0
) -> np.ndarray:
    """Write a classified image's true classes on it, then the best five with their probabilities.

    Args:
        image: (h, w, 3) uint8, BGR.
        sample: A sample of mmpretrain with ``pred_score``, (classes,), and optionally ``gt_label``.
        names: Names of the classes.
        score_thr: The lowest score that is drawn.

    Returns:
        (H, W, 3) uint8, BGR; small images grow.
    """
    true = sample.get('gt_label', torch.tensor([])).tolist()
    lines = [f'truth: {class_name(names, label)}' for label in true]
    best = best_classes(sample.pred_score, score_thr)
    lines += [f'{class_name(names, index)} {100 * score:.1f} %' for index, score in best]
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
    pen, font = _pen(picture)
    for label, (x, y) in _places(labels, font.size, len(colours)):
        text, colour = name(label), colours[label]
        dark = colour @ (0.299, 0.587, 0.114) < 128
        half = pen.textlength(text, font) / 2
        # Keep the name inside the picture.
        x = min(max(x, half), max(labels.shape[1] - half, half))
        left, top, right, bottom = pen.textbbox((x, y), text, font, anchor='mm')
        pen.rectangle((left - 2, top - 2, right + 2, bottom + 2), tuple(colour.tolist()))
        pen.text((x, y), text, 'white' if dark else 'black', font, anchor='mm')
    return np.asarray(picture)[..., ::-1]


def write_lines(image: np.ndarray, lines: Sequence[str]) -> np.ndarray:
    """Write lines of text on an image, perhaps enlarged: (h, w, 3) -> (H, W, 3), uint8, BGR."""
    picture = Image.fromarray(np.ascontiguousarray(image[..., ::-1]))
    factor = max(1, -(-_SMALLEST_SIDE // min(picture.size)))
    picture = picture.resize((picture.width * factor, picture.height * factor))
    pen, font = _pen(picture)
    margin, height = font.size // 2, font.size * 3 // 2
    for i, line in enumerate(lines):
        right = pen.textlength(line, font) + 2 * margin
        pen.rectangle((0, i * height, right, (i + 1) * height), 'black')
        pen.text((margin, (i + 0.5) * height), line, 'white', font, anchor='lm')
    return np.asarray(picture)[..., ::-1]


def _pen(picture: Image.Image) -> tuple[ImageDraw.ImageDraw, ImageFont.FreeTypeFont]:
    """Writes on a picture, with a font size relative to that of the picture."""
    # Importing matplotlib takes longer than the rest of ptnt_mm.
    from matplotlib.font_manager import findfont

    letters = max(_SMALLEST_LETTERS, max(picture.size) // _LETTERS_PER_SIDE)
    # Of the fonts that come with matplotlib, this one covers the most alphabets.
    return ImageDraw.Draw(picture), ImageFont.truetype(findfont('DejaVu Sans'), letters)


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
