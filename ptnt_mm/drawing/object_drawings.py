"""Draw objects on an image: boxes, masks and names, in sizes that suit the image."""

from collections.abc import Mapping
from typing import Any

import cv2
import numpy as np
from PIL import Image, ImageDraw

from ptnt_mm.drawing.class_drawings import class_name
from ptnt_mm.drawing.letters import font_of, letter_size
from ptnt_mm.utils.colours import palette_of

_LINES_PER_SIDE = 320
"""The longer side of an image in widths of its lines."""

_LETTERS_PER_OBJECT = 3
"""The shorter side of a box in letters: the names of small objects are smaller, by up to half."""

_SMALLEST_LETTERS = 7
"""In pixels, on images of 280 pixels or less, which names would cover otherwise."""

_OPACITY = 0.4  # of masks

_BRIGHTNESS = (0.299, 0.587, 0.114)
"""Shares of red, green and blue."""


def draw_objects(image: np.ndarray, objects: Any, dataset_meta: Mapping[str, Any]) -> np.ndarray:
    """Draw objects or detections, those with the highest scores on top.

    Args:
        image: (H, W, 3) uint8, BGR.
        objects: An ``InstanceData`` of mmdet, on the CPU: ``labels``, and ``bboxes``, ``masks`` or
            both; optionally ``scores`` and ``label_names``.
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
    line = max(1, round(max(image.shape) / _LINES_PER_SIDE))
    masks, boxes = _masks(objects), _boxes(objects)
    for mask, colour in zip(masks, colours, strict=len(masks) > 0):
        _draw_mask(drawn, mask, colour, line)
    if boxes is None:
        boxes = np.array([cv2.boundingRect(mask.astype(np.uint8)) for mask in masks])
        boxes[:, 2:] += boxes[:, :2]
    else:
        for corners, colour in zip(_inside(boxes, drawn), colours, strict=True):
            cv2.rectangle(drawn, corners[:2], corners[2:], colour, line)
    picture = Image.fromarray(drawn)
    pen = ImageDraw.Draw(picture)
    for i, corners in enumerate(_inside(boxes, drawn)):
        text = _name(objects, i, dataset_meta)
        _write_name(pen, corners, text, colours[i], picture.size, line)
    return np.asarray(picture)[..., ::-1]


def _masks(objects: Any) -> np.ndarray:
    """Masks (n, H, W), bool; empty without any."""
    masks = objects.get('masks')
    if masks is None:
        return np.zeros((0, 0, 0), bool)
    # Those of the ground truth are of a class of mmdet.
    return np.asarray(masks.to_ndarray() if hasattr(masks, 'to_ndarray') else masks).astype(bool)


def _boxes(objects: Any) -> np.ndarray | None:
    """Boxes (n, 4) in pixels: left, top, right, bottom. None if there are only masks."""
    boxes = objects.get('bboxes')
    if boxes is None:
        return None
    boxes = np.asarray(getattr(boxes, 'tensor', boxes), dtype=np.float64)
    # SOLO predicts masks, with boxes of zeros.
    return None if 'masks' in objects and not boxes.any() else boxes


def _inside(boxes: np.ndarray, image: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Boxes in whole pixels of an image (H, W, 3), without the parts outside of it."""
    height, width = image.shape[:2]
    last = np.array([width, height, width, height]) - 1
    return [tuple(box) for box in np.nan_to_num(boxes).clip(0, last).round().astype(int).tolist()]


def _draw_mask(image: np.ndarray, mask: np.ndarray, colour: tuple[int, ...], line: int) -> None:
    """Tint the pixels of a mask (H, W), and draw its outline, in place."""
    x, y, width, height = cv2.boundingRect(mask.astype(np.uint8))
    part, inner = image[y : y + height, x : x + width], mask[y : y + height, x : x + width]
    part[inner] = (1 - _OPACITY) * part[inner] + _OPACITY * np.array(colour)
    found = cv2.findContours(inner.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    cv2.drawContours(image, found[0], -1, colour, line, offset=(x, y))


def _name(objects: Any, index: int, dataset_meta: Mapping[str, Any]) -> str:
    """The class of an object, and its score in percent."""
    if 'label_names' in objects:
        name = str(objects.label_names[index])
    else:
        name = class_name(dataset_meta.get('classes'), int(objects.labels[index]))
    return f'{name} {100 * float(objects.scores[index]):.0f} %' if 'scores' in objects else name


def _write_name(
    pen: ImageDraw.ImageDraw,
    corners: tuple[int, int, int, int],
    text: str,
    colour: tuple[int, ...],
    room: tuple[int, int],
    line: int,
) -> None:
    """Write a name above its box, or at the top in it where there is no room above."""
    left, top, right, bottom = corners
    largest = letter_size(room, _SMALLEST_LETTERS)
    wanted = min(right - left, bottom - top) // _LETTERS_PER_OBJECT
    font = font_of(min(max(wanted, largest // 2, _SMALLEST_LETTERS), largest))
    height = font.size * 5 // 4
    width = font.getlength(text) + font.size // 2
    x = max(min(left - line // 2, room[0] - width), 0)
    y = top - line // 2 - height
    if y < 0:
        y = top + line // 2
    pen.rectangle((x, y, x + width, y + height), colour)
    ink = 'white' if np.dot(colour, _BRIGHTNESS) < 128 else 'black'
    pen.text((x + font.size // 4, y + height / 2), text, ink, font, anchor='lm')
