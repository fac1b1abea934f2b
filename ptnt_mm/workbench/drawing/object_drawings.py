"""Draw objects on an image: boxes, also rotated ones, masks and names, in sizes that suit it."""

from collections.abc import Iterable, Mapping
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from ptnt_mm.utils.colours import ink_on, palette_of
from ptnt_mm.workbench.data.rotated_boxes import around, as_array, corners_of
from ptnt_mm.workbench.drawing.class_drawings import class_name
from ptnt_mm.workbench.drawing.letters import font_of, letter_size, place_labels

_LINES_PER_SIDE = 320  # the longer side of an image in widths of its lines

_LETTERS_PER_OBJECT = 3
"""The shorter side of a box in letters: the names of small objects are smaller, by up to half."""

_SMALLEST_LETTERS = 7
"""In pixels, on images of 280 pixels or less, which names would cover otherwise."""

_OPACITY = 0.4  # of masks


def draw_objects(image: np.ndarray, objects: Any, dataset_meta: Mapping[str, Any]) -> np.ndarray:
    """Draw objects or detections, those with the highest scores on top.

    Args:
        image: (H, W, 3) uint8, BGR.
        objects: An ``InstanceData`` of mmdet or mmrotate, on the CPU: ``labels``, and ``bboxes``,
            ``masks`` or both; optionally ``scores`` and ``label_names``. With ``tile`` in its
            metainfo, lines and letters have the size of those on an image of this longer side.
        dataset_meta: The names and colours of the classes, as ``find_classes`` returns them.

    Returns:
        (H, W, 3) uint8, BGR.
    """
    if len(objects) == 0:
        return image
    if 'scores' in objects:
        objects = objects[objects.scores.argsort(stable=True)]
    labels = objects.labels.tolist()
    palette = palette_of(dataset_meta, max(labels) + 1)
    colours = [tuple(map(int, palette[label])) for label in labels]
    # OpenCV draws in place, and into contiguous arrays only.
    drawn = image[..., ::-1].copy()
    side = min(objects.get('tile') or max(image.shape), max(image.shape))
    line = max(1, round(side / _LINES_PER_SIDE))
    boxes = _boxes(objects)
    if 'masks' in objects:
        for mask, colour in zip(_masks(objects), colours, strict=True):
            _draw_mask(drawn, mask, colour, line)
    if boxes is None:
        boxes = np.array([cv2.boundingRect(mask.astype(np.uint8)) for mask in _masks(objects)])
        boxes[:, 2:] += boxes[:, :2]
    elif boxes.shape[1] > 4:
        corners = corners_of(boxes)
        for outline, colour in zip(_whole(corners), colours, strict=True):
            cv2.polylines(drawn, [outline], True, colour, line)
        boxes = around(corners)
    else:
        for corners, colour in zip(_inside(boxes, drawn), colours, strict=True):
            cv2.rectangle(drawn, corners[:2], corners[2:], colour, line)
    names = [_name(objects, i, dataset_meta) for i in range(len(labels))]
    letters = letter_size((side, side), _SMALLEST_LETTERS)
    return _write_names(drawn, _inside(boxes, drawn), names, colours, line, letters)[..., ::-1]


def _masks(objects: Any) -> Iterable[np.ndarray]:
    """Masks (H, W), bool. Run lengths are decoded one at a time: a large image has many."""
    masks = objects.masks
    if isinstance(masks, list):
        from pycocotools import mask as coco  # a program that draws no such masks may lack it

        return (coco.decode(mask).astype(bool) for mask in masks)
    # Those of the ground truth are of a class of mmdet.
    return np.asarray(masks.to_ndarray() if hasattr(masks, 'to_ndarray') else masks).astype(bool)


def _boxes(objects: Any) -> np.ndarray | None:
    """Boxes in pixels, (n, 4), as left, top, right and bottom, or rotated; None without any."""
    boxes = objects.get('bboxes')
    if boxes is None:
        return None
    boxes = as_array(boxes)
    # SOLO predicts masks, with boxes of zeros.
    return None if 'masks' in objects and not boxes.any() else boxes


def _inside(boxes: np.ndarray, image: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Boxes in whole pixels of an image (H, W, 3), without the parts outside of it."""
    height, width = image.shape[:2]
    last = np.array([width, height, width, height]) - 1
    return [tuple(box) for box in np.nan_to_num(boxes).clip(0, last).round().astype(int).tolist()]


def _whole(corners: np.ndarray) -> np.ndarray:
    """Corners in whole pixels, as far outside as OpenCV draws."""
    limits = np.iinfo(np.int16)
    return np.nan_to_num(corners).clip(limits.min, limits.max).round().astype(np.int32)


def _draw_mask(image: np.ndarray, mask: np.ndarray, colour: tuple[int, ...], line: int) -> None:
    """Tint the pixels of a mask (H, W), and draw its outline, in place."""
    x, y, width, height = cv2.boundingRect(mask.astype(np.uint8))
    part, inner = image[y : y + height, x : x + width], mask[y : y + height, x : x + width]
    part[inner] = (1 - _OPACITY) * part[inner] + _OPACITY * np.array(colour)
    found = cv2.findContours(inner.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    cv2.drawContours(image, found[0], -1, colour, line, offset=(x, y))


def _name(objects: Any, index: int, dataset_meta: Mapping[str, Any]) -> str:
    if 'label_names' in objects:
        name = str(objects.label_names[index])
    else:
        name = class_name(dataset_meta.get('classes'), int(objects.labels[index]))
    return f'{name} {float(objects.scores[index]):.2f}' if 'scores' in objects else name


def _write_names(
    image: np.ndarray,
    boxes: list[tuple[int, int, int, int]],
    names: list[str],
    colours: list[tuple[int, ...]],
    line: int,
    letters: int,
) -> np.ndarray:
    """Write names next to boxes, the last on top; returns the picture (H, W, 3)."""
    picture = Image.fromarray(image)
    pen = ImageDraw.Draw(picture)
    fonts = [_font(box, letters) for box in boxes]
    sizes = [
        (font.getlength(name) + font.size // 2, font.size * 5 // 4)
        for name, font in zip(names, fonts, strict=True)
    ]
    # A label above its box touches the outside of the line.
    outer = np.array(boxes) + np.array([-1, -1, 1, 1]) * (line // 2)
    places = place_labels(outer[::-1], sizes[::-1], picture.size)[::-1].round().astype(int)
    for name, font, colour, place in zip(names, fonts, colours, places.tolist(), strict=True):
        pen.rectangle(place, colour)
        middle = (place[0] + font.size // 4, (place[1] + place[3]) / 2)
        pen.text(middle, name, ink_on(colour), font, anchor='lm')
    return np.asarray(picture)


def _font(box: tuple[int, int, int, int], largest: int) -> ImageFont.FreeTypeFont:
    """The font for the name of a box; ``largest`` is the height of the largest letters."""
    left, top, right, bottom = box
    wanted = min(right - left, bottom - top) // _LETTERS_PER_OBJECT
    return font_of(min(max(wanted, largest // 2, _SMALLEST_LETTERS), largest))
