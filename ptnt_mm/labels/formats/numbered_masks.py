"""Numbered object masks: 0 is the background, and each other value is one object."""

from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from ptnt_mm.labels.formats.format import Collector, Format
from ptnt_mm.labels.formats.mask_pairs import find_pairs, has_large_numbers, read_pairs, spread
from ptnt_mm.labels.formats.mask_values import count_values, indices_of, read_table, read_values
from ptnt_mm.labels.masks import from_pixels
from ptnt_mm.labels.model import LabelledObject, Labels
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.text import counted

_CLASS = 'object'
_SAMPLE = 30  # masks whose numbers are looked at
_VALUES = 20  # of a mask whose areas are counted
_FEW = 3  # objects in each image; as few numbers may be those of nested classes


def _find(tree: Tree) -> str:
    masks = list(find_pairs(tree).masks.values())
    if not masks:
        return ''
    if has_large_numbers(masks):
        return f'{counted(len(masks), "mask")} with numbers above 255'
    if read_table(tree).names or not _are_numbered(spread(masks, _SAMPLE)):
        return ''
    return (
        f'{counted(len(masks), "mask")} with the numbers 1 to N, of one area each, and another N '
        'in each; `format=class-masks` reads the numbers as classes'
    )


def find_any(tree: Tree) -> str:
    """Search for masks with any numbers; they may also be classes."""
    masks = list(find_pairs(tree).masks.values())
    # Two values are background and one class.
    if not any(map(_has_several_values, spread(masks, _SAMPLE))):
        return ''
    return f'{counted(len(masks), "mask")}, if each number is one object'


def _has_several_values(mask: Path) -> bool:
    try:
        return len(count_values(read_values(mask))) > 2
    except Exception:  # decoders may raise anything
        return False


def _are_numbered(masks: list[Path]) -> bool:
    """Whether the numbers in each mask are 1 to N, with a different N, and of one area each."""
    highest = []
    areas = sampled = others = touching = 0
    for mask in masks:
        if others > 0.1 * len(masks):
            return False
        try:
            pixels = indices_of(read_values(mask))
        except Exception:  # decoders may raise anything
            continue
        values = np.unique(pixels[pixels > 0])
        if not len(values):
            continue
        highest.append(len(values))
        if values[-1] != len(values):
            others += 1
            continue
        touching += _touching(pixels)
        for value in spread(values.tolist(), _VALUES):
            sampled += 1
            areas += cv2.connectedComponents((pixels == value).astype(np.uint8))[0] - 1
    has_many = max(highest, default=0) > _FEW and len(set(highest)) > 1
    # Classes that lie inside each other, or are layers, touch the class before.
    if touching > 0.8 * (sum(highest) - len(highest)):
        return False
    return has_many and areas <= 1.1 * sampled and others <= 0.1 * len(highest)


def _touching(pixels: np.ndarray) -> int:
    """The number of values above 1 that touch the value before, as pixels of a row or a column."""
    found: set[int] = set()
    for one, other in ((pixels[:, 1:], pixels[:, :-1]), (pixels[1:], pixels[:-1])):
        upper, lower = np.maximum(one, other), np.minimum(one, other)
        found |= set(upper[(upper - lower == 1) & (lower > 0)].tolist())
    return len(found)


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    collector.labels.add_class(_CLASS)
    for image, mask, objects in read_pairs(collector, lambda numbers: list(_objects(numbers))):
        collector.add(mask, image, objects)
    return collector.finish()


def _objects(pixels: np.ndarray) -> Iterator[LabelledObject]:
    """The object of each number above 0."""
    numbers = indices_of(pixels)
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
