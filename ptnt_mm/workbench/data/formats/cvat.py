"""CVAT's XML format, 'CVAT for images 1.1': boxes, polygons, ellipses and masks."""

import math
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.data.labels import LabelledObject, Labels, box_between, outlined
from ptnt_mm.workbench.data.masks import ellipse, from_pixels, turned_box
from ptnt_mm.workbench.data.reading.collector import (
    NO_AREA,
    NO_NUMBERS,
    UNREADABLE,
    Collector,
    number,
    read_xml,
    whole_number,
)
from ptnt_mm.workbench.data.reading.format import Format
from ptnt_mm.workbench.data.tree import Tree, split_named


def _find(tree: Tree) -> str:
    files = tree.first_few(_files(tree), 3)
    return f'{files} with <annotations>' if files else ''


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    for file, root in collector.read(_files(tree), read_xml):
        for label in root.findall('meta//labels/label'):
            # The points of a skeleton have names too, and so have tags of whole images.
            is_class = not label.findtext('parent') and label.findtext('type') != 'tag'
            if label.findtext('name') and is_class:
                collector.labels.add_class(label.findtext('name'))
        if root.find('track') is not None:
            what = 'tracks of a video: export it as "CVAT for images"'
            collector.labels.report(file, UNREADABLE, what)
        for element in root.findall('image'):
            _add(collector, file, element)
        if tags := sum(element.find('tag') is not None for element in root.findall('image')):
            what = 'tags, which are classes of whole images: export them as "ImageNet"'
            collector.labels.report(file, what, counted(tags, 'image'))
    return collector.finish()


def _files(tree: Tree) -> list[Path]:
    return tree.containing('.xml', rb'<annotations[\s>]')


def _add(collector: Collector, file: Path, element: Element) -> None:
    name = element.get('name') or ''
    split = split_named(element.get('subset') or '')
    stated = whole_number(element.get('width')), whole_number(element.get('height'))
    path = collector.tree.find_image(name, file.parent, split)
    image = collector.image(file, path, split, stated, name)
    if image is not None:
        collector.add(file, image, _objects(collector.labels, file, element, image.size))


def _objects(
    labels: Labels, file: Path, image: Element, size: tuple[int, int]
) -> Iterator[LabelledObject]:
    for element in image:
        if element.tag in ('tag', 'attribute'):
            continue
        name = image.get('name')
        label = (element.get('label') or '').strip()
        shape = _SHAPES.get(element.tag)
        if shape is None or not label:
            what = f'{element.tag} in {name}' if label else f'{element.tag} without label in {name}'
            labels.report(file, NO_AREA, what, label)
            continue
        try:
            yield shape(label, element, size)
        except (ValueError, TypeError, OverflowError) as error:
            labels.report(file, NO_NUMBERS, f'{label} in {name}: {error}', label)


def _box(label: str, element: Element, _: tuple[int, int]) -> LabelledObject:
    left, top, right, bottom = (number(element.get(key)) for key in ('xtl', 'ytl', 'xbr', 'ybr'))
    angle = math.radians(float(element.get('rotation') or 0))
    if not angle:
        return LabelledObject(label, box_between(left, top, right, bottom))
    centre = (left + right) / 2, (top + bottom) / 2
    return outlined(label, turned_box(*centre, right - left, bottom - top, angle))


def _polygon(label: str, element: Element, _: tuple[int, int]) -> LabelledObject:
    pairs = [pair.split(',') for pair in (element.get('points') or '').split(';')]
    return outlined(label, [float(value) for x, y in pairs for value in (x, y)])


def _ellipse(label: str, element: Element, _: tuple[int, int]) -> LabelledObject:
    x, y, rx, ry = (float(element.get(key) or 'nan') for key in ('cx', 'cy', 'rx', 'ry'))
    angle = math.radians(float(element.get('rotation') or 0))
    return outlined(label, ellipse(x, y, rx, ry, angle))


def _mask(label: str, element: Element, size: tuple[int, int]) -> LabelledObject:
    """Run lengths inside a box, row by row, outside first."""
    left, top, width, height = (int(element.get(key)) for key in ('left', 'top', 'width', 'height'))
    runs = [int(run) for run in (element.get('rle') or '').split(',')]
    if min(runs) < 0 or sum(runs) != width * height:
        raise ValueError(f'its run lengths count {sum(runs)} pixels of {width} x {height}')
    if min(left, top) < 0 or left + width > size[0] or top + height > size[1]:
        raise ValueError(f'its mask is outside {size[0]} x {size[1]}')
    inside = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(height, width)
    pixels = np.zeros(size[::-1], bool)
    pixels[top : top + height, left : left + width] = inside
    return from_pixels(label, pixels)


_SHAPES = {'box': _box, 'polygon': _polygon, 'ellipse': _ellipse, 'mask': _mask}

FORMAT = Format(
    __name__,
    title='CVAT for images 1.1',
    looks_for='an XML file with <annotations> and <image>',
    tasks=('detection', 'instance', 'semantic'),
    order=60,
    find=_find,
    read=_read,
    note='Boxes, rotated boxes, polygons, ellipses and masks. `subset` is the split.',
)
