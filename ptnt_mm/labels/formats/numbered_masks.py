"""Numbered object masks: 0 is the background, and each other value is one object."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from ptnt_mm.labels.formats.format import Collector, Format
from ptnt_mm.labels.formats.mask_pairs import find_pairs, has_large_numbers, read_pairs
from ptnt_mm.labels.formats.mask_values import different_values, read_values
from ptnt_mm.labels.masks import from_pixels
from ptnt_mm.labels.model import LabelledObject, Labels
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.text import counted

_CLASS = 'object'


def _find(tree: Tree) -> str:
    pairs, _ = find_pairs(tree)
    if not pairs:
        return ''
    if has_large_numbers(pairs):
        return f'{counted(len(pairs), "mask")} with numbers above 255'
    # Two values are background and one class; colours and palettes number no objects.
    if not any(map(_has_several_values, islice(pairs.values(), 20))):
        return ''
    return f'{counted(len(pairs), "mask")}, if each number is one object'


def _has_several_values(mask: Path) -> bool:
    try:
        return len(different_values(read_values(mask))) > 2
    except Exception:  # decoders may raise anything
        return False


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    collector.labels.add_class(_CLASS)
    for image, mask, objects in read_pairs(collector, lambda numbers: list(_objects(numbers))):
        collector.add(mask, image, objects)
    return collector.finish()


def _objects(numbers: np.ndarray) -> Iterator[LabelledObject]:
    """The object of each number above 0."""
    for value in np.unique(numbers[numbers > 0]):
        mask, box = from_pixels(numbers == value)
        yield LabelledObject(_CLASS, box, mask)


FORMAT = Format(
    'numbered-masks',
    'Numbered object masks',
    'masks as for class-masks, in which each number is one object',
    ('instance', 'detection', 'semantic'),
    _find,
    _read,
)
