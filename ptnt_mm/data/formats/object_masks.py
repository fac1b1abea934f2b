"""Masks of objects without a class: a file for each object, or a number for each in one file."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from ptnt_mm.data.class_masks import (
    IGNORED,
    NOT_READABLE,
    OF_OTHER_SIZE,
    indices_of,
    read_values,
)
from ptnt_mm.data.decoding import DECODERS, why_unreadable
from ptnt_mm.data.formats.class_tables import read_table
from ptnt_mm.data.formats.format import Collector, Format
from ptnt_mm.data.formats.mask_pairs import find_pairs, spread
from ptnt_mm.data.formats.paired_masks import has_large_numbers, other_size, read_pairs
from ptnt_mm.data.labels import LabelledImage, LabelledObject, Labels
from ptnt_mm.data.many_files import grouped, on_threads
from ptnt_mm.data.masks import EMPTY, from_pixels
from ptnt_mm.data.tree import Tree
from ptnt_mm.utils.text import counted

_MASKS = ('masks', 'mask', 'instances', 'labels')
_CLASS = 'object'
_SAMPLE = 30  # masks whose numbers are looked at
_VALUES = 20  # of a mask whose areas are counted
_FEW = 3  # objects in each image; as few numbers may be those of nested classes


def _find_files(tree: Tree) -> str:
    masks = _masks(tree)
    total = sum(map(len, masks.values()))
    # One mask for each image would be a class mask.
    if total <= len(masks):
        return ''
    images = counted(len(masks), 'image')
    return f'{images} with a folder of masks each, {counted(total, "mask")}'


def _read_files(tree: Tree) -> Labels:
    collector = Collector(tree)
    masks = _masks(tree)
    images = [image for path in masks if (image := collector.image(path, path)) is not None]
    collector.labels.add_class(_CLASS)
    found = on_threads(
        lambda image: [_of_file(file, image) for file in masks[image.path]], images, 'Reading'
    )

    def usable(image: LabelledImage, results: list) -> Iterator[LabelledObject]:
        for file, (item, *why) in zip(masks[image.path], results, strict=True):
            if item is None:
                collector.labels.report(file, *why)
            else:
                yield item

    for image, results in zip(images, found, strict=True):
        collector.add(image.path, image, usable(image, results))
    collector.labels.aside = {file for files in masks.values() for file in files}
    labels = collector.finish()
    _note_inverted(labels)
    return labels


def _note_inverted(labels: Labels) -> None:
    """Note masks that are probably white where no object is."""
    every = [(item.box, image.size) for image in labels.images for item in image.objects]
    whole = sum(box[2:] == size for box, size in every)
    if whole * 2 > len(every):
        labels.notes.append(
            f'warning: {whole:,} of {counted(len(every), "object")} reach from edge to edge of '
            'their images: are black and white exchanged in the masks?'
        )


def _masks(tree: Tree) -> dict[Path, list[Path]]:
    """The mask files of each image: in masks/NAME next to images, or in masks next to one image."""
    folders = grouped((image.parent, image) for image in tree.images)
    in_masks = {folder for folder in folders if _is_masks(folder) or _is_masks(folder.parent)}
    images = [path for folder in folders.keys() - in_masks for path in folders[folder]]
    beside = grouped((path.parent.parent, path) for path in images)
    named = grouped((path.stem, path) for path in images)
    masks = {}
    for folder in sorted(in_masks):
        # <x>/images/NAME.png and <x>/masks/..., or images/NAME.png and masks/NAME/...
        owners = beside.get(folder.parent, []) if _is_masks(folder) else named.get(folder.name, [])
        if len(owners) == 1:
            masks[owners[0]] = folders[folder]
    return masks


def _is_masks(folder: Path) -> bool:
    return folder.name.casefold() in _MASKS


def _of_file(file: Path, image: LabelledImage) -> tuple[LabelledObject | None, str, str]:
    """The object of a mask file; None, and what is wrong, if it cannot be used."""
    try:
        with Image.open(file, formats=DECODERS) as stored:
            pixels = np.asarray(stored.convert('L'))
    except Exception as error:  # decoders may raise anything
        return None, NOT_READABLE.what, why_unreadable(error)
    inside = pixels > (127 if pixels.max(initial=0) > 1 else 0)
    if sizes := other_size(inside, image):
        return None, OF_OTHER_SIZE.what, sizes
    if not inside.any():
        return None, EMPTY.what, ''
    return from_pixels(_CLASS, inside), '', ''


FILES = Format(
    'object-masks',
    'One mask file for each object',
    'masks/NAME/ with several images next to images/NAME.png, or masks/ next to one image',
    ('instance', 'detection', 'semantic'),
    _find_files,
    _read_files,
)


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


def _find_numbers(tree: Tree) -> str:
    masks = list(find_pairs(tree).masks.values())
    if masks and has_large_numbers(masks):
        return f'{counted(len(masks), "mask")} with numbers above 255'
    if not masks or read_table(tree).names or not _are_numbered(_samples(tree)):
        return ''
    return (
        f'{counted(len(masks), "mask")} with the numbers 1 to N, of one area each, and another N '
        'in each; `format=class-masks` reads the numbers as classes'
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


def find_any_numbers(tree: Tree) -> str:
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


def _read_numbers(tree: Tree) -> Labels:
    collector = Collector(tree)
    collector.labels.add_class(_CLASS)
    for image, mask, objects in read_pairs(collector, _objects_of_numbers):
        collector.add(mask, image, objects)
    return collector.finish()


def _objects_of_numbers(pixels: np.ndarray) -> list[LabelledObject]:
    """The object of each number above 0."""
    numbers = indices_of(pixels)
    return [from_pixels(_CLASS, numbers == value) for value in np.unique(numbers[numbers > 0])]


NUMBERS = Format(
    'numbered-masks',
    'Numbered object masks',
    'masks as for class-masks, in which each number is one object',
    ('instance', 'detection', 'semantic'),
    _find_numbers,
    _read_numbers,
)
