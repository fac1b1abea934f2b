"""COCO's panoptic labels: PNGs with a number for each segment, whose category a JSON file has."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.labels.class_masks import NOT_READABLE, OF_OTHER_SIZE
from ptnt_mm.labels.coco import read_json
from ptnt_mm.labels.formats.format import MISSING, UNREADABLE, Collector, Format
from ptnt_mm.labels.masks import EMPTY, from_pixels
from ptnt_mm.labels.model import LabelledImage, LabelledObject, Labels
from ptnt_mm.labels.tree import Tree, split_in
from ptnt_mm.utils.decoding import DECODERS, why_unreadable
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import first_few


def _files(tree: Tree) -> list[Path]:
    return tree.containing('.json', rb'"segments_info"', rb'"categories"', rb'"images"')


def _find(tree: Tree) -> str:
    files = first_few((str(tree.relative(file)) for file in _files(tree)), 3)
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
    split = split_in(file.stem) or tree.split_of(file)
    classes = {entry['id']: labels.add_class(entry['name']) for entry in content['categories']}
    names = {entry['id']: entry['file_name'] for entry in content['images']}
    for entry in content['annotations']:
        name, of_mask = names[entry['image_id']], entry['file_name']
        # The masks of instances.json are in the folder instances; those of images have their names.
        mask = tree.find_image(of_mask, file.with_suffix('') / of_mask, split)
        path = tree.find_image(name, file.parent, split)
        image = collector.image(file, None if path == mask else path, split, name=name)
        if mask is None:
            labels.report(file, MISSING, tree.why_not_found(of_mask, file.parent))
        elif image is not None:
            segments = {s['id']: classes[s['category_id']] for s in entry['segments_info']}
            collector.add(mask, image, _objects(labels, mask, image, segments))
        if mask is not None:
            labels.aside.add(mask)
        elif image is not None:
            collector.drop(image)


def _objects(
    labels: Labels, file: Path, image: LabelledImage, segments: dict[int, str]
) -> Iterator[LabelledObject]:
    """The segments of a mask; the number of each is R + 256 G + 65536 B."""
    try:
        with Image.open(file, formats=DECODERS) as stored:
            numbers = np.asarray(stored.convert('RGB'), np.int64) @ (1, 256, 65536)
    except Exception as error:  # decoders may raise anything
        labels.report(file, NOT_READABLE.what, why_unreadable(error))
        return
    if numbers.shape[::-1] != image.size:
        labels.report(file, OF_OTHER_SIZE.what, f'{numbers.shape[::-1]}, its image {image.size}')
        return
    for number, label in segments.items():
        if not (inside := numbers == number).any():
            labels.report(file, EMPTY.what, f'segment {number}', label)
            continue
        mask, box = from_pixels(inside)
        yield LabelledObject(label, box, mask)


FORMAT = Format(
    'coco-panoptic',
    'COCO panoptic',
    'a JSON file with "segments_info", and a PNG of segments for each image',
    ('semantic',),
    _find,
    _read,
)
