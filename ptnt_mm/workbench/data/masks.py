"""Object masks as COCO stores them: checked, drawn, and made from pixels."""

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import cv2
import numpy as np
from pycocotools import mask as coco

from ptnt_mm.utils.errors import UserError, message_of
from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.data.class_masks import IGNORED
from ptnt_mm.workbench.data.labels import (
    Box,
    LabelledObject,
    LabelRule,
    Outcome,
    Segmentation,
    box_around,
)
from ptnt_mm.workbench.data.tiles import Window

BACKGROUND = 'background'  # the class with the index 0

FAR = 10
"""Limit for the distance of a polygon outside its image, in sides of the image."""

_SIDES = 36  # of the polygon for an ellipse
_FINER = 4  # times, so that an outline runs along the edges of pixels and not through their middles
_TOLERANCE = 0.5, 0.75  # pixels between an outline and its mask, where this is small or large
_LOSS = 0.04  # of a side that an outline may be away from a mask of a size between these
_CORNERS = 3  # the fewest points of a polygon
_ROUNDING = 3  # pixels that a mask's side may differ from its box's, however small both are


@dataclass(frozen=True)
class Mask:
    """The mask of an object as a file has it.

    Attributes:
        value: Polygons or run lengths; label files may contain anything.
        size: (width, height) of its image in pixels.
        box: The box next to it in the file, if there is one.
    """

    value: object
    size: tuple[int, int]
    box: Box | None = None

    @cached_property
    def drawn(self) -> dict | None:
        """Its run lengths; None if it cannot be drawn."""
        return self._drawing[0]

    @property
    def why_not_drawn(self) -> str:
        """Why it cannot be drawn; empty if it can."""
        return self._drawing[1]

    @cached_property
    def _drawing(self) -> tuple[dict | None, str]:
        try:
            return run_lengths(self.value, int(self.size[1]), int(self.size[0])), ''
        except Exception as error:  # pycocotools raises many kinds
            return None, message_of(error) or type(error).__name__

    @property
    def has_short_polygons(self) -> bool:
        """Whether some of its polygons have no area."""
        return isinstance(self.value, list) and any(map(_is_short, self.value))

    @property
    def has_another_size(self) -> bool:
        """Whether its run lengths are those of an image of another size."""
        is_encoded = isinstance(self.value, Mapping)
        return is_encoded and self.value.get('size') != [self.size[1], self.size[0]]

    @property
    def is_elsewhere(self) -> bool:
        """Whether its box and the stated one have an IoU below one half."""
        if not self.box:
            return False
        corners = np.array([coco.toBbox(self.drawn), self.box], float)
        corners = corners.reshape(2, 2, 2).cumsum(axis=1)
        corners = corners.clip(0, self.size)  # as mmdet clips boxes
        inside = np.concatenate([corners[:, 0], np.diff(corners, axis=1)[:, 0]], axis=1)
        shared = coco.iou(inside[:1], inside[1:], [0]).item()
        return shared < 1 / 2 and np.ptp(corners, axis=0).max() > _ROUNDING


def is_absent(value: object) -> bool:
    """Whether there is nothing, or a list of empty polygons, as some tools write it."""
    return not value or (isinstance(value, list) and all(part == [] for part in value))


def _is_polygon(points: object) -> bool:
    return isinstance(points, list) and len(points) % 2 == 0 and len(points) >= 2 * _CORNERS


def _is_short(points: object) -> bool:
    return isinstance(points, list) and _is_flat(points) and not _is_polygon(points)


def _is_flat(values: list) -> bool:
    return not any(isinstance(value, list) for value in values)


MISSING = LabelRule(
    'objects without a mask',
    Severity.ERROR,
    'training or evaluation fails on them',
    outcome=Outcome.AS_BOX,  # with the rectangle of its box
    applies_to=lambda mask: is_absent(mask.value),
)
NESTED = LabelRule(
    'masks that are not a list of polygons [x, y, x, y, ...]',
    Severity.ERROR,
    'write [[x, y, x, y, ...], ...], also for a single polygon: mmdet fails on others, or ignores '
    'them',
    outcome=Outcome.KEPT,
    applies_to=lambda mask: mask.value != _polygons(mask.value),
)
TOO_SHORT = LabelRule(
    f'objects with polygons of fewer than {_CORNERS} points',
    Severity.WARNING,
    'mmdet drops such polygons, and ignores objects that have no other',
    outcome=Outcome.IN_PART,
    applies_to=lambda mask: mask.has_short_polygons,
)
BROKEN = LabelRule(
    'masks that cannot be drawn',
    Severity.ERROR,
    'mmdet fails on them, or draws noise',
    outcome=Outcome.AS_BOX,
    applies_to=lambda mask: mask.drawn is None,
)
EMPTY = LabelRule(
    'masks without a pixel',
    Severity.ERROR,
    'COCO has polygons in pixels: convert them',
    outcome=Outcome.AS_BOX,
    applies_to=lambda mask: not coco.area(mask.drawn),
)

FORM_RULES = (
    MISSING,
    NESTED,
    TOO_SHORT,
    LabelRule(
        'masks not the size of their images',
        Severity.ERROR,
        'write size as [height, width]',
        outcome=Outcome.AS_BOX,
        applies_to=lambda mask: mask.has_another_size,
    ),
)
MASK_RULES = (
    *FORM_RULES,
    BROKEN,
    EMPTY,
    LabelRule(
        'masks not where their boxes are',
        Severity.WARNING,
        'are they of the same object, in pixels, and x before y?',
        outcome=Outcome.KEPT,
        applies_to=lambda mask: mask.is_elsewhere,
    ),
)
"""Each row's predicate takes a :class:`Mask` that no row before it applies to.

The first rows need no drawing, which takes long.
"""


def rule_for(mask: Mask, rules: Iterable[LabelRule] = MASK_RULES) -> LabelRule | None:
    """The first rule that applies to a mask; None if it is right."""
    return next((rule for rule in rules if rule.applies_to(mask)), None)


def usable(
    value: object, size: tuple[int, int], box: Box | None = None
) -> tuple[Segmentation | None, LabelRule | None, str]:
    """The part of a mask in a label file that can be drawn.

    Args:
        value: The value in the file; it may be anything.
        size: (width, height) of the image in pixels.
        box: The box next to it in the file, if there is one.

    Returns:
        Polygons or run lengths, None without any; the rule that applies, if any; and details.
    """
    if is_absent(value):
        return None, None, ''
    if isinstance(value, RunLengths):
        return value, None, ''
    mask = Mask(_as_numbers(_polygons(value)), size, box)
    rule = rule_for(mask)
    if rule is TOO_SHORT:
        return usable(list(filter(_is_polygon, mask.value)), size, box)[0], rule, ''
    is_kept = rule is None or rule.outcome is Outcome.KEPT
    return mask.value if is_kept else None, rule, mask.why_not_drawn if rule is BROKEN else ''


def _polygons(value: object) -> object:
    """Polygons as [[x, y, x, y, ...], ...]: one may be without a list, points may be [x, y]."""
    if not isinstance(value, list):
        return value
    if _are_points(value) or _is_flat(value):
        value = [value]
    return [list(chain(*part)) if _are_points(part) else part for part in value]


def _are_points(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(p, list) and len(p) == 2 for p in value)


def _as_numbers(value: object) -> object:
    """The same with numbers in place of text in polygons, if that is possible."""
    if not isinstance(value, list):
        return value
    with suppress(TypeError, ValueError, OverflowError):
        return [list(map(float, p)) if _is_polygon(p) else p for p in value]
    return value


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
                f'{message_of(error)}'
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
    if not isinstance(mask, Mapping):
        raise ValueError('it is neither polygons [[x, y, x, y, ...], ...] nor run lengths')
    if list(mask['size']) != [height, width]:
        raise ValueError(f'its size is {mask["size"]}, that of the image {[height, width]}')
    counts = mask['counts']
    total = sum(counts) if isinstance(counts, list) else _lengths_of(counts).sum()
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


def encode_patch(pixels: np.ndarray, left: int, top: int, size: tuple[int, int]) -> dict:
    """Encode a mask (h, w) bool at a place in an image of a size (width, height), as run lengths.

    The mask of the whole image, which may be large, is never made.
    """
    columns, rows = np.nonzero(pixels.T)
    places = (left + columns) * size[1] + top + rows
    return _encode_runs(places, places + 1, size)


class RunLengths(dict):
    """Run lengths made in this module, which need no check."""


def crop_mask(mask: Segmentation, size: tuple[int, int], window: Window) -> RunLengths:
    """The part of a mask inside a window of its image, which has a size (width, height).

    The time depends on the outline: no mask is made of pixels, because an image may be large.

    Args:
        mask: Polygons or run lengths that can be drawn, as :func:`usable` returns them.
        size: (width, height) of the image in pixels.
        window: The part of the image.

    Returns:
        Run lengths of an image of the size of the window.
    """
    width, height = size
    left, top, right, bottom = window
    if isinstance(mask, list):
        mask = run_lengths(mask, height, width)
    bounds = _lengths_of(mask['counts']).cumsum()
    starts, ends = bounds[: len(bounds) // 2 * 2].reshape(-1, 2).T
    # A run may go on in the next columns.
    columns = (ends - 1) // height - starts // height + 1
    runs = np.repeat(np.arange(len(starts)), columns)
    column = (
        starts[runs] // height
        + np.arange(len(runs))
        - np.repeat(columns.cumsum() - columns, columns)
    )
    first = (starts[runs] - column * height).clip(top, bottom)
    last = (ends[runs] - column * height).clip(top, bottom)
    inside = (last > first) & (column >= left) & (column < right)
    places = (column[inside] - left) * (bottom - top) - top
    part = right - left, bottom - top
    return RunLengths(_encode_runs(places + first[inside], places + last[inside], part))


def _encode_runs(starts: np.ndarray, ends: np.ndarray, size: tuple[int, int]) -> dict:
    """Encode runs of pixels, counted down one column after the other, in ascending order."""
    is_break = starts[1:] > ends[:-1]
    starts = starts[np.append(True, is_break)[: len(starts)]]
    ends = ends[np.append(is_break, True)[: len(ends)]]
    bounds = np.stack([starts, ends], axis=1).ravel()
    counts = np.diff([0, *bounds, size[0] * size[1]]).tolist()
    if counts[-1] == 0:  # pycocotools writes no empty last run either
        counts.pop()
    encoded = coco.frPyObjects(dict(size=[size[1], size[0]], counts=counts), size[1], size[0])
    return dict(size=encoded['size'], counts=encoded['counts'].decode())


def _lengths_of(counts: str | bytes | list) -> np.ndarray:
    """Run lengths as numbers: compressed ones have 5 bits to a character, lowest first."""
    if isinstance(counts, list):
        return np.array(counts, np.int64)
    content = counts.encode() if isinstance(counts, str) else counts
    chunks = np.frombuffer(content, np.uint8).astype(np.int64) - ord('0')
    if not chunks.size:
        return np.zeros(0, np.int64)
    ends = np.flatnonzero(chunks & 32 == 0)
    if not ends.size or ends[-1] != len(chunks) - 1:
        raise ValueError('its run lengths are truncated')
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    places = np.arange(len(chunks)) - np.repeat(starts, lengths)
    numbers = np.add.reduceat((chunks & 31) << 5 * places, starts)
    numbers -= np.where(chunks[ends] & 16, 1 << 5 * lengths, 0)
    # From the fourth on, each is the difference from the one two before it.
    for first in (1, 2):
        numbers[first::2] = numbers[first::2].cumsum()
    return numbers


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


def turned_box(x: float, y: float, width: float, height: float, angle: float) -> list[float]:
    """The corners of a box with its centre at (x, y), rotated clockwise around it, in radians."""
    w, h = width / 2, height / 2
    return rotated(((-w, -h), (w, -h), (w, h), (-w, h)), x, y, angle)


def with_rectangle(item: LabelledObject) -> LabelledObject:
    """The object, with the rectangle of its box as its mask if it has none."""
    if item.segmentation is not None:
        return item
    x, y, width, height = item.box
    right, bottom = x + width, y + height
    return replace(item, segmentation=[[x, y, right, y, right, bottom, x, bottom]])


def outlines(mask: Mapping) -> list[list[float]]:
    """The polygons around the parts of a mask of run lengths, the largest first, without holes.

    Each is at most 0.75 pixels from the mask, so that it has few points to correct by hand.
    """
    pixels = coco.decode(mask)
    left, top, width, height = coco.toBbox(mask).astype(int)
    inside = pixels[top : top + height, left : left + width]
    if not inside.size:
        return []
    finer = cv2.resize(inside, None, fx=_FINER, fy=_FINER, interpolation=cv2.INTER_NEAREST)
    found, _ = cv2.findContours(finer, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)
    tolerance = float(np.clip(_LOSS * min(inside.shape), *_TOLERANCE))
    simple = [
        cv2.approxPolyDP(contour, tolerance * _FINER, closed=True)[:, 0]
        for contour in sorted(found, key=cv2.contourArea, reverse=True)
    ]
    return [
        ((points + 0.5) / _FINER + (left, top)).round(2).ravel().tolist()
        for points in simple
        if len(points) >= _CORNERS
    ]


def from_pixels(label: str, pixels: np.ndarray) -> LabelledObject:
    """The object of a class that a mask, (H, W) bool, shows."""
    mask = RunLengths(encode_mask(pixels))
    return LabelledObject(label, tuple(map(float, coco.toBbox(mask))), mask)


def area(item: LabelledObject, size: tuple[int, int]) -> float:
    """The area of an object in pixels: that of its mask, otherwise of its box."""
    if item.segmentation is None:
        return item.box[2] * item.box[3]
    mask = item.segmentation
    if not isinstance(mask, RunLengths):
        mask = run_lengths(mask, size[1], size[0])
    return float(coco.area(mask))
