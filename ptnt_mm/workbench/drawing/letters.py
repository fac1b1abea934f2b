"""Sizes of letters and lines on a picture, which grow with it, the font, and where labels go."""

from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from PIL import ImageFont

SMALLEST_LETTERS = 10
"""In pixels; smaller ones are hard to read."""

_LETTERS_PER_SIDE = 40


def letter_size(size: tuple[int, int], smallest: int = SMALLEST_LETTERS) -> int:
    """The height of letters on a picture of a size (width, height), all in pixels."""
    return max(smallest, max(size) // _LETTERS_PER_SIDE)


@cache
def font_of(size: int) -> ImageFont.FreeTypeFont:
    """The font for letters of a height in pixels."""
    # Importing matplotlib takes longer than the rest of ptnt_mm.
    from matplotlib.font_manager import findfont

    # Of the fonts that come with matplotlib, this one covers the most alphabets.
    return ImageFont.truetype(findfont('DejaVu Sans'), size)


_OVER_LABEL, _OVER_BOX, _OVER_OWN = 4.0, 1.0, 0.25
"""Costs of a pixel of a label over other labels, other boxes and its own box."""


def place_labels(boxes: ArrayLike, sizes: ArrayLike, room: tuple[int, int]) -> np.ndarray:
    """Place labels so that they cover as little as possible of each other and of other boxes.

    Each label is placed in turn: above its box, in it, below or beside it, aligned with one of its
    sides. Without overlaps, the first of these is chosen.

    Args:
        boxes: (n, 4), left, top, right and bottom in pixels, the most important first.
        sizes: (n, 2), the width and height of each label in pixels.
        room: Width and height of the picture in pixels.

    Returns:
        (n, 4): the place of each label, as the boxes. It lies in the picture where it fits.
    """
    boxes, sizes = np.reshape(boxes, (-1, 4)), np.reshape(sizes, (-1, 2))
    places = np.zeros((len(boxes), 4))
    for i, (box, size) in enumerate(zip(boxes, sizes, strict=True)):
        candidates = _around(box, size, room)
        over_boxes = overlaps(candidates, boxes)
        cost = _OVER_LABEL * overlaps(candidates, places[:i]).sum(axis=1)
        cost += _OVER_BOX * np.delete(over_boxes, i, axis=1).sum(axis=1)
        cost += _OVER_OWN * over_boxes[:, i]
        places[i] = candidates[cost.argmin()]
    return places


def overlaps(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The area that each of n boxes (n, 4) shares with each of m boxes (m, 4): (n, m)."""
    corner = np.maximum(first[:, None, :2], second[None, :, :2])
    sides = np.minimum(first[:, None, 2:], second[None, :, 2:]) - corner
    return sides.clip(0).prod(axis=2)


def _around(box: np.ndarray, size: np.ndarray, room: tuple[int, int]) -> np.ndarray:
    """Places (m, 4) for a label at its box, those outside of the picture moved into it."""
    left, top, right, bottom = box
    width, height = size
    places = [
        (x, y) for y in (top - height, top, bottom, bottom - height) for x in (left, right - width)
    ]
    places += [(right, top), (left - width, top)]
    corners = np.array(places).clip(0, np.maximum(np.array(room) - size, 0))
    return np.concatenate([corners, corners + size], axis=1)
