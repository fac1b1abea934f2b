"""Object masks as COCO stores them: checked, drawn, and made from pixels."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain

import numpy as np
from pycocotools import mask as coco

from ptnt_mm.labels.class_masks import IGNORED
from ptnt_mm.labels.model import Box, LabelledObject, Segmentation, box_around
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.findings import Fault, Severity

BACKGROUND = 'background'  # the class with the index 0

FAR = 10
"""Limit for the distance of a polygon outside its image, in sides of the image."""

_SIDES = 36  # of the polygon for an ellipse
_CORNERS = 3  # the fewest points of a polygon
_ROUNDING = 3  # pixels that a mask's side may differ from its box's, however small both are

MISSING = Fault('objects without a mask', Severity.ERROR, 'training or evaluation fails on them')
TOO_SHORT = Fault(
    f'objects with polygons of fewer than {_CORNERS} points',
    Severity.WARNING,
    'mmdet drops such polygons, and ignores objects that have no other',
)
OF_OTHER_SIZE = Fault(
    'masks not the size of their images', Severity.ERROR, 'write size as [height, width]'
)
BROKEN = Fault('masks that cannot be drawn', Severity.ERROR, 'mmdet fails on them, or draws noise')
EMPTY = Fault('masks without a pixel', Severity.ERROR, 'COCO has polygons in pixels: convert them')
ELSEWHERE = Fault(
    'masks not where their boxes are',
    Severity.WARNING,
    'are they of the same object, in pixels, and x before y?',
)
FAULTS = (MISSING, TOO_SHORT, OF_OTHER_SIZE, BROKEN, EMPTY, ELSEWHERE)
"""Faults of the mask of an object; the first that holds is reported."""


def draw_mask(
    image: Mapping, annotations: list[dict], labels: Mapping[int | str, int]
) -> np.ndarray:
    """Draw the objects of an image: small ones over large ones, and all over crowds.

    Args:
        image: The image's entry, with height and width in pixels.
        annotations: The annotations of its objects.
        labels: Class index by category id.

    Returns:
        The class index of each pixel, (H, W) uint8.

    Raises:
        UserError: if run lengths have a different size than the image, or cannot be drawn.
    """
    size = int(image['height']), int(image['width'])
    objects = []
    for annotation in annotations:
        try:
            drawn = run_lengths(annotation['segmentation'], *size)
        except Exception as error:  # pycocotools raises many kinds
            raise UserError(
                f'the mask of id {annotation["id"]} in {image["file_name"]} cannot be drawn: '
                f'{error}'
            ) from error
        # A crowd region covers several objects, so its pixels are ignored.
        is_crowd = bool(annotation.get('iscrowd'))
        label = IGNORED if is_crowd else labels[annotation['category_id']]
        objects.append((not is_crowd, -int(coco.area(drawn)), label, drawn))
    pixels = np.zeros(size, np.uint8)
    # The sort is stable: of two objects of equal area, the later one is drawn on top.
    for _, _, label, drawn in sorted(objects, key=lambda entry: entry[:2]):
        pixels[coco.decode(drawn).astype(bool)] = label
    return pixels


def run_lengths(mask: Mapping | list, height: int, width: int) -> dict:
    """Convert an object's segmentation to the run lengths that pycocotools decodes.

    Args:
        mask: Polygons of finite numbers, or run lengths.
        height: Height of its image in pixels.
        width: Width of its image in pixels.

    Raises:
        ValueError: if it does not describe every pixel of the image: pycocotools would fill the
            rest with uninitialised memory.
    """
    if isinstance(mask, list):
        polygons = list(map(np.asarray, mask))
        if any(polygon.dtype.kind not in 'iuf' or polygon.ndim != 1 for polygon in polygons):
            raise ValueError('a polygon is not a list of numbers')
        if not all(np.isfinite(polygon).all() for polygon in polygons):
            raise ValueError('a polygon is not finite')
        # pycocotools walks along the edges, pixel by pixel.
        if any(np.abs(polygon).max() > FAR * max(height, width) for polygon in polygons):
            raise ValueError('a polygon is far outside the image')
        return coco.merge(coco.frPyObjects(mask, height, width))
    if list(mask['size']) != [height, width]:
        raise ValueError(f'its size is {mask["size"]}, that of the image {[height, width]}')
    counts = mask['counts']
    total = sum(counts) if isinstance(counts, list) else _pixels_of(counts)
    if total != height * width:
        raise ValueError(f'it counts {total} pixels of {height * width}')
    if isinstance(counts, list):
        return coco.frPyObjects(mask, height, width)
    coco.decode(mask)  # refuses runs of negative length
    return dict(mask)


def encode_mask(mask: np.ndarray) -> dict:
    """Encode a mask, (H, W) bool, as run lengths for JSON: ``size`` and ``counts``."""
    encoded = coco.encode(np.asfortranarray(mask, dtype=np.uint8))
    return dict(size=encoded['size'], counts=encoded['counts'].decode())


def _pixels_of(counts: str | bytes) -> int:
    """The sum of compressed run lengths: numbers of 5 bits to a character, lowest first."""
    content = counts.encode() if isinstance(counts, str) else counts
    chunks = np.frombuffer(content, np.uint8).astype(np.int64) - ord('0')
    if not chunks.size:
        return 0
    ends = np.flatnonzero(chunks & 32 == 0)
    if not ends.size or ends[-1] != len(chunks) - 1:
        raise ValueError('its run lengths are truncated')
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    places = np.arange(len(chunks)) - np.repeat(starts, lengths)
    numbers = np.add.reduceat((chunks & 31) << 5 * places, starts)
    numbers -= np.where(chunks[ends] & 16, 1 << 5 * lengths, 0)
    # From the fourth on, each is the difference from the one two before it.
    return int(numbers[0] + numbers[1::2].cumsum().sum() + numbers[2::2].cumsum().sum())


def usable(
    value: object, size: tuple[int, int], box: Box | None = None
) -> tuple[Segmentation | None, Fault | None, str]:
    """The part of a mask in a label file that can be drawn.

    Args:
        value: The value in the file; it may be anything.
        size: (width, height) of the image in pixels.
        box: The box next to it in the file, if there is one.

    Returns:
        Polygons or run lengths, None without any; the fault, if any; and details of it.
    """
    if not value or isinstance(value, RunLengths):
        return value or None, None, ''
    fault = fault_of_form(value, size)
    if fault is OF_OTHER_SIZE:
        return None, fault, ''
    try:
        if isinstance(value, list):
            value = [list(map(float, polygon)) for polygon in value if _is_polygon(polygon)]
            if not value:
                return None, fault, ''
        drawn = fault_of_drawing(value, size, box)
        return None if drawn is EMPTY else value, fault or drawn, ''
    except Exception as error:  # label files may contain anything; pycocotools raises many kinds
        return None, BROKEN, str(error) or type(error).__name__


def fault_of_form(mask: object, size: tuple[int, int]) -> Fault | None:
    """The fault of a mask before it is drawn, for an image of (width, height); None without one."""
    if not mask:
        return MISSING
    if isinstance(mask, Mapping):
        return None if mask.get('size') == [size[1], size[0]] else OF_OTHER_SIZE
    return TOO_SHORT if isinstance(mask, list) and not all(map(_is_polygon, mask)) else None


def fault_of_drawing(
    mask: Mapping | list, size: tuple[int, int], box: Box | None = None
) -> Fault | None:
    """The fault of a drawn mask, for an image of (width, height); None without one.

    Raises:
        Exception: of any kind, if it cannot be drawn.
    """
    drawn = run_lengths(mask, int(size[1]), int(size[0]))
    if not coco.area(drawn):
        return EMPTY
    return ELSEWHERE if box and _is_elsewhere(coco.toBbox(drawn), box, size) else None


def _is_polygon(points: object) -> bool:
    return isinstance(points, list) and len(points) % 2 == 0 and len(points) >= 2 * _CORNERS


def _is_elsewhere(drawn: np.ndarray, box: Box, size: tuple[int, int]) -> bool:
    """Whether the IoU of two boxes, x, y, width, height, is below one half."""
    corners = np.array([drawn, box], float).reshape(2, 2, 2).cumsum(axis=1)
    corners = corners.clip(0, size)  # as mmdet clips boxes
    inside = np.concatenate([corners[:, 0], np.diff(corners, axis=1)[:, 0]], axis=1)
    shared = coco.iou(inside[:1], inside[1:], [0]).item()
    return shared < 1 / 2 and np.ptp(corners, axis=0).max() > _ROUNDING


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


def with_rectangle(item: LabelledObject) -> LabelledObject:
    """The object, with the rectangle of its box as its mask if it has none."""
    if item.segmentation is not None:
        return item
    x, y, width, height = item.box
    right, bottom = x + width, y + height
    return replace(item, segmentation=[[x, y, right, y, right, bottom, x, bottom]])


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
