"""Masks in which each number is one object, of no class."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np

from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.data.class_masks import IGNORED, indices_of, read_values
from ptnt_mm.workbench.data.labels import LabelledObject, Labels
from ptnt_mm.workbench.data.masks import from_pixels
from ptnt_mm.workbench.data.reading.class_tables import read_table
from ptnt_mm.workbench.data.reading.collector import ONLY_CLASS, Collector
from ptnt_mm.workbench.data.reading.format import Format, Signs
from ptnt_mm.workbench.data.reading.mask_pairs import find_pairs, spread
from ptnt_mm.workbench.data.reading.paired_masks import has_large_numbers, read_pairs
from ptnt_mm.workbench.data.tree import Tree

_SAMPLE = 30  # masks whose numbers are looked at
_VALUES = 20  # of a mask whose areas are counted
_FEW = 3  # objects in each image; as few numbers may be those of nested classes


@dataclass(frozen=True)
class _Numbers:
    """The values of a mask above 0; how many were looked at, and how many areas these have."""

    values: frozenset[int]
    sampled: int
    areas: int
    touching: int

    @property
    def are_counted(self) -> bool:
        """Whether they are 1 to N."""
        return max(self.values) == len(self.values)


@lru_cache(maxsize=1)  # recognition asks several times
def _samples(tree: Tree) -> list[_Numbers]:
    found = []
    for mask in spread([*find_pairs(tree).masks.values()], _SAMPLE):
        with suppress(Exception):  # decoders may raise anything
            pixels = indices_of(read_values(mask))
            values = set(np.unique(pixels).tolist()) - {0}
            looked = spread(sorted(values - {IGNORED}), _VALUES)
            areas = sum(cv2.connectedComponents((pixels == v).astype(np.uint8))[0] for v in looked)
            areas -= len(looked)  # the outside of each
            if values:
                found += [_Numbers(frozenset(values), len(looked), areas, _touching(pixels))]
    return found


def _have_one_area(masks: Sequence[_Numbers]) -> bool:
    """Whether nearly each value is one area."""
    return sum(m.areas for m in masks) <= 1.1 * sum(m.sampled for m in masks)


def _find(tree: Tree) -> str:
    masks = list(find_pairs(tree).masks.values())
    if masks and has_large_numbers(masks):
        return f'{counted(len(masks), "mask")} with numbers above 255'
    if not masks or read_table(tree).names or not _are_numbered(_samples(tree)):
        return ''
    return (
        f'{counted(len(masks), "mask")} numbered 1 to N, one area for each number, where N '
        'differs; `format=class-masks` reads the numbers as classes'
    )


def _are_numbered(masks: Sequence[_Numbers]) -> bool:
    """Whether the numbers in each mask are 1 to N, with a different N, and of one area each."""
    numbered = [mask for mask in masks if mask.are_counted]
    highest = [len(mask.values) for mask in masks]
    # Classes that lie inside each other, or are layers, touch the class before.
    if sum(mask.touching for mask in numbered) > 0.8 * (sum(highest) - len(highest)):
        return False
    has_many = max(highest, default=0) > _FEW and len(set(highest)) > 1
    return has_many and _have_one_area(numbered) and len(numbered) >= 0.9 * len(masks)


def _find_any(tree: Tree) -> str:
    """Search for masks with any numbers; they may also be classes."""
    # Two values are background and one class.
    if not any(len(mask.values) > 1 for mask in _samples(tree)):
        return ''
    return f'{counted(len(find_pairs(tree).masks), "mask")}, if each number is one object'


def why_may_be_numbered(tree: Tree) -> str:
    """A description of masks in which each value is one area, and so may be an object; or empty."""
    masks = _samples(tree)
    values = set().union(*(mask.values for mask in masks)) - {IGNORED}
    if len(values) < 2 or not _have_one_area(masks):
        return ''
    count = counted(len(find_pairs(tree).masks), 'mask')
    return f'{count} whose values are one area each; if each is one object'


def _touching(pixels: np.ndarray) -> int:
    """The number of values above 1 that touch the value before, as pixels of a row or a column."""
    found: set[int] = set()
    for one, other in ((pixels[:, 1:], pixels[:, :-1]), (pixels[1:], pixels[:-1])):
        upper, lower = np.maximum(one, other), np.minimum(one, other)
        found |= set(upper[(upper - lower == 1) & (lower > 0)].tolist())
    return len(found)


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    collector.labels.add_class(ONLY_CLASS)
    for image, mask, objects in read_pairs(collector, _objects):
        collector.add(mask, image, objects)
    return collector.finish()


def _objects(pixels: np.ndarray) -> list[LabelledObject]:
    """The object of each number above 0."""
    numbers = indices_of(pixels)
    return [from_pixels(ONLY_CLASS, numbers == value) for value in np.unique(numbers[numbers > 0])]


FORMAT = Format(
    __name__,
    title='Numbered object masks',
    looks_for='masks as for class-masks, in which each number is one object',
    tasks=('instance', 'detection', 'semantic'),
    order=210,
    find=_find,
    read=_read,
    find_any=_find_any,
    signs=Signs.PAIRS,
    note=(
        'From Cellpose (`NAME_cp_masks.png`) and StarDist. Recognised by numbers above 255, or by '
        'numbers 1 to N with one area for each number, where N differs between masks and '
        'consecutive numbers rarely touch. 0 is the background, and each other number is one '
        'object of the class `object`. `--format class-masks` reads the numbers as classes, '
        '`--format numbered-masks` reads any numbers as objects. Where class masks have no names '
        'and each value is one area in each mask, as track numbers are, a line says that they may '
        'be objects.'
    ),
)
