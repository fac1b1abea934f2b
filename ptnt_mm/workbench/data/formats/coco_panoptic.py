"""COCO's panoptic labels: PNGs with a number for each segment, whose category a JSON file has."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.deploy.decoding import DECODERS, why_unreadable
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.class_masks import NOT_READABLE
from ptnt_mm.workbench.data.coco import read_json
from ptnt_mm.workbench.data.labels import LabelledObject, Labels
from ptnt_mm.workbench.data.masks import EMPTY, from_pixels
from ptnt_mm.workbench.data.reading.collector import MISSING, UNREADABLE, Collector
from ptnt_mm.workbench.data.reading.format import Format
from ptnt_mm.workbench.data.tree import Tree, split_of_all


def _files(tree: Tree) -> list[Path]:
    return tree.containing('.json', rb'"segments_info"', rb'"categories"', rb'"images"')


def _find(tree: Tree) -> str:
    files = tree.first_few(_files(tree), 3)
    return f'{files} with "segments_info"' if files else ''


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    for file in _files(tree):
        try:
            _add(collector, file, read_json(file, as_hosts=False))
        except (UserError, KeyError, TypeError, AttributeError) as error:
            why = str(error) if isinstance(error, UserError) else f'it is incomplete: {error!r}'
            collector.labels.report(file, UNREADABLE, why)
    return collector.finish()


def _add(collector: Collector, file: Path, content: dict) -> None:
    tree, labels = collector.tree, collector.labels
    split = split_of_all(file) or tree.split_of(file)
    classes = {entry['id']: labels.add_class(entry['name']) for entry in content['categories']}
    names = {entry['id']: str(entry['file_name']) for entry in content['images']}
    for i, entry in enumerate(content['annotations']):
        try:
            name, of_mask = _named(names, entry, 'image_id'), str(entry['file_name'])
            segments = {s['id']: _named(classes, s, 'category_id') for s in entry['segments_info']}
        except (KeyError, TypeError, AttributeError) as error:
            labels.report(file, 'annotations that cannot be read', f'annotations[{i}]: {error!r}')
            continue
        # The masks of val.json are in the folder val; images have the same names.
        mask = tree.find_image(of_mask, file.with_suffix('') / of_mask, split)
        try:
            numbers = _numbers(mask)
        except Exception as error:  # decoders may raise anything
            what = why_unreadable(error) if mask else tree.why_not_found(of_mask, file.parent)
            labels.report(mask or file, NOT_READABLE.what if mask else MISSING, what)
            continue
        labels.aside.add(mask)
        path = tree.find_image(name, file.parent, split)
        path = None if path == mask else path
        image = collector.image(file, path, split, numbers.shape[::-1], name)
        if image is not None:
            collector.add(mask, image, _objects(labels, mask, numbers, segments))


def _named(names: dict, entry: dict, key: str) -> str:
    """The name that an entry refers to; raises a KeyError that states the key and its value."""
    if (number := entry[key]) not in names:
        raise KeyError(f'unknown {key} {number!r}')
    return names[number]


def _numbers(mask: Path) -> np.ndarray:
    """The number of the segment at each pixel, (H, W): R + 256 G + 65536 B."""
    with Image.open(mask, formats=DECODERS) as stored:
        return np.asarray(stored.convert('RGB'), np.int64) @ (1, 256, 65536)


def _objects(
    labels: Labels, file: Path, numbers: np.ndarray, segments: dict[int, str]
) -> Iterator[LabelledObject]:
    for number, label in segments.items():
        if (inside := numbers == number).any():
            yield from_pixels(label, inside)
        else:
            labels.report(file, EMPTY.what, f'segment {number}', label)


FORMAT = Format(
    __name__,
    title='COCO panoptic',
    looks_for='a JSON file with "segments_info", and a PNG of segments for each image',
    tasks=('semantic',),
    order=20,
    find=_find,
    read=_read,
    note='For class masks: things and stuff are classes, and the rest is `background`.',
)
