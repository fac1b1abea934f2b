"""VGG Image Annotator (VIA), versions 1 and 2: saved projects, and annotations exported as JSON.

A region has a shape and any number of attributes, of which one is the class.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import first_few
from ptnt_mm.workbench.data.coco import read_json
from ptnt_mm.workbench.data.labels import LabelledObject, Labels, outlined
from ptnt_mm.workbench.data.masks import ellipse
from ptnt_mm.workbench.data.reading.collector import (
    MISSING,
    NO_AREA,
    NO_NUMBERS,
    ONLY_CLASS,
    Collector,
)
from ptnt_mm.workbench.data.reading.format import Format
from ptnt_mm.workbench.data.tree import Tree

_IMAGES, _ATTRIBUTES = '_via_img_metadata', '_via_attributes'
_CLASS_NAMES = ('class', 'label', 'category', 'name', 'type', 'object')
_CHOICES = ('dropdown', 'radio')  # the types of attributes that VIA exports as COCO's categories


def _find(tree: Tree) -> str:
    files = tree.first_few(_files(tree), 3)
    return f'{files} with "regions" and "file_attributes"' if files else ''


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    contents = dict(collector.read(_files(tree), _content))
    attribute = _class_attribute(contents.values(), collector.labels)
    for content in contents.values():
        for name in content.options(attribute).values():
            collector.labels.add_class(name)
    for file, content in contents.items():
        for image in content.images:
            _add(collector, file, content, image, attribute)
    labels = collector.finish()
    if not any(content.options(attribute) for content in contents.values()):
        labels.classes.sort()
    return labels


def _files(tree: Tree) -> list[Path]:
    return tree.containing('.json', b'"regions"', b'"file_attributes"')


@dataclass(frozen=True)
class _Content:
    """The content of a file.

    Attributes:
        images: Its images, whatever they contain.
        attributes: The declarations of the attributes of regions; empty in exported annotations.
    """

    images: list[Any]
    attributes: Mapping[str, Mapping]

    def options(self, attribute: str | None) -> dict[str, str]:
        """The names of the classes by their ids, if the attribute has a list of them.

        An id is the name, as in VIA's own export. Only where it is a number, its description is
        the name: projects that were imported from COCO have ids of categories.
        """
        return {
            key: str(name).strip() if key.isdecimal() and str(name).strip() else key
            for key, name in _dict_of(self.attributes.get(attribute), 'options').items()
            if key.strip()
        }


def _content(file: Path) -> _Content:
    content = read_json(file, as_hosts=False)
    images = content.get(_IMAGES, content) if isinstance(content, dict) else content
    if not isinstance(images, dict):
        raise UserError(f'expected a dict of images, found a {type(images).__name__}')
    declared = _dict_of(content.get(_ATTRIBUTES), 'region').items()
    return _Content(list(images.values()), {k: v for k, v in declared if isinstance(v, dict)})


def _regions(image: dict[str, Any]) -> list[Any]:
    """A list in version 2, a dict by number in version 1."""
    regions = image.get('regions')
    regions = list(regions.values()) if isinstance(regions, dict) else regions
    return regions if isinstance(regions, list) else []


def _dict_of(parent: object, key: str) -> dict[str, Any]:
    """The dict at a key; empty if there is none, or its parent is no dict either."""
    value = parent.get(key) if isinstance(parent, dict) else None
    return value if isinstance(value, dict) else {}


def _class_attribute(contents: Iterable[_Content], labels: Labels) -> str | None:
    """The attribute that is the class; None if no region has any.

    Its name decides, then that it is a choice of one, then the number of regions that have it.
    """
    used, choices = Counter(), set()
    for content in contents:
        choices |= {k for k, v in content.attributes.items() if v.get('type') in _CHOICES}
        for image in filter(lambda image: isinstance(image, dict), content.images):
            for region in _regions(image):
                attributes = _dict_of(region, 'region_attributes')
                used.update(key for key, value in attributes.items() if value)

    def rank(name: str) -> tuple[bool, bool, int]:
        return name.casefold() in _CLASS_NAMES, name in choices, used[name]

    first, *others = sorted(used, key=rank, reverse=True) or [None]
    if others:
        labels.notes.append(f'the class is the attribute {first}; not used: {first_few(others)}')
    return first


def _add(
    collector: Collector, file: Path, content: _Content, image: object, attribute: str | None
) -> None:
    name = image.get('filename') if isinstance(image, dict) else None
    if not isinstance(name, str) or not name:
        collector.labels.report(file, MISSING, f'{str(image)[:80]} has no filename')
        return
    path = collector.tree.find_image(name, file.parent)
    found = collector.image(file, path, name=name)
    if found is not None:
        options = content.options(attribute)
        collector.add(file, found, _objects(collector.labels, file, image, attribute, options))


def _objects(
    labels: Labels, file: Path, image: dict, attribute: str | None, options: Mapping[str, str]
) -> Iterator[LabelledObject]:
    for i, region in enumerate(_regions(image)):
        value = _dict_of(region, 'region_attributes').get(attribute)
        chosen = _chosen(value) if attribute else [ONLY_CLASS]
        where = f'region {i} in {image["filename"]}'
        if len(chosen) != 1:
            why = f' has {len(chosen)} values of {attribute}' if chosen else ''
            labels.report(file, 'objects without a class', f'{where}{why}')
            continue
        label = options.get(chosen[0], chosen[0])
        shape = _dict_of(region, 'shape_attributes')
        kind = shape.get('name')
        if not isinstance(kind, str) or kind not in _SHAPES:
            labels.report(file, NO_AREA, f'{kind} of {label}, {where}', label)
            continue
        try:
            yield _SHAPES[kind](label, shape)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            labels.report(file, NO_NUMBERS, f'{kind} of {label}, {where}: {error!r}', label)


def _chosen(value: object) -> list[str]:
    """The values of an attribute: one of a text or a choice, several of check boxes."""
    if isinstance(value, dict):
        return [key.strip() for key, is_set in value.items() if is_set and key.strip()]
    text = '' if value is None else str(value).strip()
    return [text] if text else []


def _rectangle(label: str, shape: dict[str, Any]) -> LabelledObject:
    x, y, width, height = (float(shape[key]) for key in ('x', 'y', 'width', 'height'))
    return LabelledObject(label, (x, y, width, height))


def _polygon(label: str, shape: dict[str, Any]) -> LabelledObject:
    pairs = zip(shape['all_points_x'], shape['all_points_y'], strict=True)
    return outlined(label, [float(value) for pair in pairs for value in pair])


def _ellipse(label: str, shape: dict[str, Any]) -> LabelledObject:
    radii = ('r', 'r') if shape['name'] == 'circle' else ('rx', 'ry')
    x, y, rx, ry = (float(shape[key]) for key in ('cx', 'cy', *radii))
    return outlined(label, ellipse(x, y, rx, ry, float(shape.get('theta') or 0)))


_SHAPES = {'rect': _rectangle, 'polygon': _polygon, 'circle': _ellipse, 'ellipse': _ellipse}
"""Points and lines have no area. Angles are in radians, clockwise."""

FORMAT = Format(
    __name__,
    title='VIA (VGG Image Annotator)',
    looks_for='a JSON file with "regions" and "file_attributes"',
    tasks=('detection', 'instance', 'semantic'),
    order=80,
    find=_find,
    read=_read,
    note=(
        'VIA 1 and 2: saved projects, and annotations exported as JSON. Rectangles, polygons, '
        'circles and ellipses; points and lines are reported. The class is the attribute of that '
        'name (or `label`, `category`, `name`, `type`, `object`), else a dropdown or radio '
        'attribute, else the one that most regions have; a line names the others. Without '
        'attributes, the class is `object`.'
    ),
)
