"""Masks that number objects: 0 is the background, and each other value is one object."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from ptnt_mm.project.formats.class_masks import (
    find_pairs,
    has_large_numbers,
    set_masks_aside,
)
from ptnt_mm.project.formats.format import Collector, Format
from ptnt_mm.project.formats.mask_values import read_values, values_of
from ptnt_mm.project.labels import LabelledImage, LabelledObject, Labels
from ptnt_mm.project.segmentations import from_pixels
from ptnt_mm.project.tree import Tree
from ptnt_mm.utils.decoding import why_unreadable
from ptnt_mm.utils.many_files import on_threads

_CLASS = 'object'


def _find(tree: Tree) -> str:
    pairs, _ = find_pairs(tree)
    if not pairs:
        return ''
    if has_large_numbers(pairs):
        return f'{len(pairs):,} masks with numbers above 255'
    first = max((values_of(mask).values for mask in islice(pairs.values(), 20)), key=len)
    # Two values are background and one class; colours and palettes number no objects.
    return f'{len(pairs):,} masks, if each number is one object' if len(first) > 2 else ''


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    pairs = set_masks_aside(tree, collector.labels)
    sized = [
        (image, mask)
        for path, mask in pairs.items()
        if (image := collector.image(mask, path)) is not None
    ]
    collector.labels.add_class(_CLASS)
    found = on_threads(lambda pair: _objects(*pair), sized, 'Reading masks')
    for (image, mask), result in zip(sized, found, strict=True):
        if isinstance(result, str):
            collector.labels.report(mask, 'masks that cannot be used', result)
            collector.drop(image)
        else:
            collector.add(mask, image, result)
    return collector.finish()


def _objects(image: LabelledImage, file: Path) -> list[LabelledObject] | str:
    """The objects of a mask, or why it cannot be used."""
    try:
        numbers = read_values(file)
    except Exception as error:  # decoders may raise anything
        return why_unreadable(error)
    if numbers.shape[::-1] != image.size:
        return f'it has {numbers.shape[::-1]} pixels, its image {image.size}'
    return list(_each(numbers))


def _each(numbers: np.ndarray) -> Iterator[LabelledObject]:
    """The object of each number above 0."""
    for value in np.unique(numbers[numbers > 0]):
        mask, box = from_pixels(numbers == value)
        yield LabelledObject(_CLASS, box, mask)


FORMAT = Format(
    'numbered-masks',
    'Masks that number objects',
    'masks as for class-masks, in which each number is one object',
    ('instance', 'detection', 'semantic'),
    _find,
    _read,
)
