"""Object masks as COCO stores them: checked, drawn, and made from pixels."""

import math
from collections.abc import Iterable, Mapping
from itertools import chain

import numpy as np
from pycocotools import mask as coco

from ptnt_mm.data.coco_masks import FAR, encode_mask, run_lengths
from ptnt_mm.project.labels import Box, LabelledObject, Segmentation, box_around

_SIDES = 36  # of the polygon for an ellipse


def checked(value: object, size: tuple[int, int]) -> tuple[Segmentation | None, str]:
    """The polygons or run lengths of an object that can be drawn.

    Args:
        value: The value in a label file; it may be anything.
        size: (width, height) of the image in pixels.

    Returns:
        The segmentation, or None without one; and the fault, empty without one.
    """
    if not value or isinstance(value, RunLengths):
        return value or None, ''
    width, height = size
    try:
        if isinstance(value, Mapping):
            run_lengths(value, height, width)
            return dict(value), ''
        polygons = [list(map(float, polygon)) for polygon in value]
        drawn = [polygon for polygon in polygons if len(polygon) >= 6 and len(polygon) % 2 == 0]
        if not drawn:
            return None, 'polygons of fewer than three points'
        farthest = max(max(map(abs, polygon)) for polygon in drawn)
        if not all(map(math.isfinite, chain(*drawn))) or farthest > FAR * max(size):
            return None, 'a polygon that is not finite, or is far outside the image'
    except Exception as error:  # label files may contain anything; pycocotools raises many kinds
        return None, str(error) or type(error).__name__
    return drawn, '' if len(drawn) == len(polygons) else 'a polygon of fewer than three points'


def box_of(mask: Segmentation) -> Box:
    """The box around polygons or run lengths."""
    if isinstance(mask, list):
        return box_around(list(chain(*mask)))
    height, width = mask['size']
    return tuple(map(float, coco.toBbox(run_lengths(mask, height, width))))


def ellipse(x: float, y: float, rx: float, ry: float, angle: float = 0.0) -> list[float]:
    """A polygon for an ellipse around (x, y), rotated clockwise by an angle in radians."""
    steps = (2 * math.pi * i / _SIDES for i in range(_SIDES))
    return rotated(((rx * math.cos(step), ry * math.sin(step)) for step in steps), x, y, angle)


def rotated(
    offsets: Iterable[tuple[float, float]], x: float, y: float, angle: float
) -> list[float]:
    """A polygon of points with offsets from (x, y), rotated clockwise around it, in radians."""
    cos, sin = math.cos(angle), math.sin(angle)
    points = ((x + dx * cos - dy * sin, y + dx * sin + dy * cos) for dx, dy in offsets)
    return list(chain(*points))


class RunLengths(dict):
    """Run lengths made in this module, which need no check."""


def from_pixels(pixels: np.ndarray) -> tuple[RunLengths, Box]:
    """The run lengths of a mask, (H, W) bool, and the box around it."""
    mask = RunLengths(encode_mask(pixels))
    return mask, tuple(map(float, coco.toBbox(mask)))


def area(item: LabelledObject, size: tuple[int, int]) -> float:
    """The area of an object in pixels: that of its mask, otherwise of its box."""
    if item.segmentation is None:
        return item.box[2] * item.box[3]
    mask = item.segmentation
    if not isinstance(mask, RunLengths):
        mask = run_lengths(mask, size[1], size[0])
    return float(coco.area(mask))
