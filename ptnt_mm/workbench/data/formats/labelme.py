"""LabelMe: a JSON file with shapes for each image."""

import base64
import io
import math
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ptnt_mm.deploy.decoding import why_unreadable
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.data.coco import read_json
from ptnt_mm.workbench.data.labels import (
    LabelledObject,
    Labels,
    box_around,
    outlined,
)
from ptnt_mm.workbench.data.masks import ellipse, from_pixels
from ptnt_mm.workbench.data.reading.collector import (
    NO_AREA,
    NO_NUMBERS,
    Collector,
    whole_number,
)
from ptnt_mm.workbench.data.reading.format import Format
from ptnt_mm.workbench.data.tree import Tree

_BACKGROUND = ('_background_', '__background__')
_IGNORED = ('__ignore__', '_ignore_')


def _find(tree: Tree) -> str:
    files = _files(tree)
    return f'{counted(len(files), "JSON file")} with "shapes" and "imagePath"' if files else ''


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    for file, content in collector.read(_files(tree), _content, KeyError, TypeError):
        shapes, name = content['shapes'], content['imagePath']
        path = collector.own_image(file, name)
        stated = tuple(whole_number(content.get(key)) for key in ('imageWidth', 'imageHeight'))
        image = collector.image(file, path, None, stated, name)
        if image is not None:
            collector.add(file, image, _grouped(collector.labels, file, shapes, image.size))
    labels = collector.finish()
    labels.classes.sort()
    return labels


def _files(tree: Tree) -> list[Path]:
    return tree.containing('.json', b'"shapes"', b'"imagePath"')


def _content(file: Path) -> dict[str, Any]:
    content = read_json(file, as_hosts=False)
    shapes, name = content['shapes'], content['imagePath']
    if not isinstance(shapes, list) or not isinstance(name, str):
        raise UserError('"shapes" is not a list, or "imagePath" not a name')
    return content


def _objects(
    labels: Labels, file: Path, shapes: list, size: tuple[int, int]
) -> Iterator[tuple[object, LabelledObject]]:
    """The objects, each with the number of its group, if any."""
    for i, shape in enumerate(shapes):
        label = shape.get('label') if isinstance(shape, dict) else None
        if not isinstance(label, str) or not label.strip():
            labels.report(file, 'objects without a class', f'shape {i}')
            continue
        if label in _BACKGROUND:
            continue
        kind = shape.get('shape_type') or 'polygon'
        try:
            points = [(float(x), float(y)) for x, y in shape.get('points') or []]
            one = _object(label.strip(), kind, points, shape, size)
        except Exception as error:  # shapes may contain anything, including embedded images
            labels.report(file, NO_NUMBERS, f'shape {i}, {label}: {why_unreadable(error)}', label)
            continue
        if one is None:
            labels.report(file, NO_AREA, f'{kind} of {label}', label)
        elif label in _IGNORED:
            labels.report(file, f'objects labelled {label}', label=label)
        else:
            yield shape.get('group_id'), one


def _object(
    label: str, kind: str, points: list, shape: dict[str, Any], size: tuple[int, int]
) -> LabelledObject | None:
    flat = list(chain(*points))
    if kind == 'rectangle':
        return LabelledObject(label, box_around(flat))
    if kind == 'circle':
        (x, y), (on_x, on_y) = points
        radius = math.hypot(on_x - x, on_y - y)
        flat = ellipse(x, y, radius, radius)
    elif kind == 'mask':
        return _mask(label, points, shape, size)
    elif kind not in ('polygon', 'oriented_rectangle', 'rotation'):  # the last of X-AnyLabeling
        return None
    return outlined(label, flat)


def _mask(label: str, points: list, shape: dict[str, Any], size: tuple[int, int]) -> LabelledObject:
    """A PNG inside the file, placed by its upper left corner."""
    content = base64.b64decode(shape['mask'])
    with Image.open(io.BytesIO(content), formats=['PNG']) as stored:
        inside = np.asarray(stored.convert('L')) > 0
    left, top = round(points[0][0]), round(points[0][1])
    pixels = np.zeros(size[::-1], bool)
    room = pixels[top : top + inside.shape[0], left : left + inside.shape[1]]
    if min(left, top) < 0 or not room.size:
        raise ValueError('its mask is outside the image')
    room[:] = inside[: room.shape[0], : room.shape[1]]
    return from_pixels(label, pixels)


def _grouped(
    labels: Labels, file: Path, shapes: list, size: tuple[int, int]
) -> Iterator[LabelledObject]:
    """The objects; polygons with the same label and group are one."""
    parts: dict[tuple, list[LabelledObject]] = {}
    for i, (group, item) in enumerate(_objects(labels, file, shapes, size)):
        is_part = group is not None and isinstance(item.segmentation, list)
        parts.setdefault((item.label, str(group)) if is_part else (i,), []).append(item)
    for members in parts.values():
        if len(members) == 1:
            yield members[0]
        else:
            yield outlined(members[0].label, *chain(*(m.segmentation for m in members)))


FORMAT = Format(
    __name__,
    title='LabelMe',
    looks_for='JSON files with "shapes" and "imagePath"',
    tasks=('detection', 'instance', 'semantic'),
    order=70,
    find=_find,
    read=_read,
    note=(
        "Polygons, rectangles, circles, rotated boxes (also X-AnyLabeling's) and masks. Polygons "
        'and circles with the same label and `group_id` are one object.'
    ),
)
