"""A map of classes, drawn over its image."""

from collections.abc import Callable

import cv2
import numpy as np
from matplotlib.font_manager import findfont
from PIL import Image, ImageDraw, ImageFont

_OPACITY = 0.5

_PLACES = 512
"""Places for names are looked for in a map whose longer side has at most so many pixels."""

_LETTERS_PER_SIDE = 40
_SMALLEST_LETTERS = 10


def tint(image: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """Mix an image with the colours of its pixels; all (H, W, 3) uint8."""
    return cv2.addWeighted(image, 1 - _OPACITY, np.ascontiguousarray(colours), _OPACITY, 0)


def draw_names(
    image: np.ndarray, labels: np.ndarray, name: Callable[[int], str], colours: np.ndarray
) -> np.ndarray:
    """Write each class's name where the class is widest, unless it is lower there than a letter.

    Args:
        image: (H, W, 3) uint8, BGR.
        labels: (H, W), the class of each pixel; what has no colour gets no name.
        name: Of a class.
        colours: (classes, 3) uint8, RGB.
    """
    # mmseg's own visualizer sorts the coordinates of every pixel as a Python list: minutes and
    # many GB for a photograph.
    letters = max(_SMALLEST_LETTERS, max(labels.shape) // _LETTERS_PER_SIDE)
    picture = Image.fromarray(np.ascontiguousarray(image[..., ::-1]))
    pen = ImageDraw.Draw(picture)
    # Of all that matplotlib brings along, it knows the most alphabets.
    font = ImageFont.truetype(findfont('DejaVu Sans'), letters)
    for label, (x, y) in _places(labels, letters, len(colours)):
        text, colour = name(label), colours[label]
        dark = colour @ (0.299, 0.587, 0.114) < 128
        half = pen.textlength(text, font) / 2
        # A name is not to leave the picture.
        x = min(max(x, half), max(labels.shape[1] - half, half))
        box = pen.textbbox((x, y), text, font, anchor='mm')
        left, top, right, bottom = box
        pen.rectangle((left - 2, top - 2, right + 2, bottom + 2), tuple(colour.tolist()))
        pen.text((x, y), text, 'white' if dark else 'black', font, anchor='mm')
    return np.asarray(picture)[..., ::-1]


def _places(labels: np.ndarray, letters: int, number: int) -> list[tuple[int, tuple[int, int]]]:
    """The classes with room for a name, and the (x, y) that are farthest from other classes."""
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
