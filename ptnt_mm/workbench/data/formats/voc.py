"""Pascal VOC: an XML file for each image, with or without ``ImageSets``, also next to images.

Some tools count pixels from 1, as VOC did, others from 0; files do not record which. MMDetection
and supervision subtract 1 from all coordinates; torchvision, globox and labelformat keep them.
Here half a pixel is subtracted in reading and added in writing, so the error is at most half a
pixel.
"""

import math
import re
from collections.abc import Iterator
from itertools import count, takewhile
from pathlib import Path, PurePosixPath
from xml.etree.ElementTree import Element

from ptnt_mm.deploy.decoding import FORMATS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, finder
from ptnt_mm.workbench.data.labels import (
    LabelledObject,
    Labels,
    Outcome,
    box_around,
    box_between,
)
from ptnt_mm.workbench.data.masks import turned_box
from ptnt_mm.workbench.data.reading.collector import (
    EMPTY,
    NO_NUMBERS,
    UNREADABLE,
    Collector,
    is_set,
    number,
    read_text,
    read_xml,
    text_of,
    whole_number,
)
from ptnt_mm.workbench.data.reading.format import Format
from ptnt_mm.workbench.data.tree import Tree, split_named

HALF = 0.5
_SUFFIXES = {*FORMATS, '.xml'}
_LISTS = {'val': 'val', 'test': 'test', 'train': 'train', 'trainval': None}
"""The lists of splits; the first with an image counts, so what is tested is not trained on."""


def _find(tree: Tree) -> str:
    files = _files(tree)
    if not files:
        return ''
    lists = [
        file.name
        for sets in image_sets(tree).values()
        for name, file in sets.items()
        # It is both, if these are there.
        if name != 'trainval' or not {'train', 'val'} <= sets.keys()
    ]
    listed = f', split by ImageSets/Main/{", ".join(lists)}' if lists else ''
    return f'{counted(len(files), "XML file")} with <annotation>{listed}'


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    sets = image_sets(tree)
    splits = {folder: splits_of(files, tree, collector.labels) for folder, files in sets.items()}
    # Of two names with the same end, the first counts.
    entries = {
        folder: finder({tail: name for name in reversed(names) for tail in _tails(name)})
        for folder, names in splits.items()
    }
    found: set[tuple[Path, str]] = set()
    for file in _files(tree):
        folder = next((parent for parent in splits if file.is_relative_to(parent)), None)
        split = None
        if folder is not None:
            inside = _tails(file.relative_to(folder).with_suffix('').as_posix())
            entry = next(filter(None, map(entries[folder], inside)), None)
            if entry is None:
                collector.labels.report(file, 'label files that no list in ImageSets names')
                continue
            found.add((folder, entry))
            split = splits[folder][entry]
        try:
            _add(collector, file, read_xml(file), split)
        except UserError as error:
            collector.labels.report(file, UNREADABLE, str(error))
    for folder, names in splits.items():
        for name in sorted(name for name in names if (folder, name) not in found):
            file = folder / 'Annotations' / f'{PurePosixPath(name).name}.xml'
            if file.is_file():
                why = 'it has no <annotation>' if file.stat().st_size else EMPTY
                collector.labels.report(file, UNREADABLE, why)
            else:
                collector.labels.report(file, 'label files that are listed but missing')
    labels = collector.finish()
    labels.classes.sort()
    return labels


def _files(tree: Tree) -> list[Path]:
    # CVAT's files have <annotations>. A truncated file may contain only its beginning.
    return tree.containing('.xml', rb'<annotation[\s>]')


def image_sets(tree: Tree, kind: str = 'Main') -> dict[Path, dict[str, Path]]:
    """The lists of each folder with ImageSets/Main, by the names of the lists.

    CVAT writes Train.txt and Validation.txt; those with VOC's own names come first.
    """
    sets: dict[Path, dict[str, Path]] = {}
    files = [f for f in tree.with_suffix('.txt') if f.parts[-3:-1] == ('ImageSets', kind)]
    for file in sorted(files, key=lambda file: file.stem.casefold() not in _LISTS):
        stem = file.stem.casefold()
        name = stem if stem in _LISTS else stem.isalpha() and split_named(stem)
        if name:
            sets.setdefault(file.parents[2], {}).setdefault(name, file)
    return sets


def splits_of(files: dict[str, Path], tree: Tree, labels: Labels) -> dict[str, str | None]:
    """The split of each name in the lists; None if it is only in trainval."""
    splits: dict[str, str | None] = {}
    for name in (name for name in _LISTS if name in files):
        try:
            lines = read_text(files[name]).splitlines()
        except UserError as error:
            labels.report(files[name], UNREADABLE, str(error))
            continue
        lines = (_without_mark(line.strip(), tree) for line in lines if line.strip())
        for word in dict.fromkeys(map(_listed_name, lines)):
            split = splits.setdefault(word, _LISTS[name])
            if _LISTS[name] not in (None, split):
                detail = f'{word} is in {name} and {split}; {split} is kept'
                what = 'images in several lists'
                labels.report(files[name], what, detail, outcome=Outcome.KEPT)
    return splits


def _without_mark(line: str, tree: Tree) -> str:
    """A line of a list without the mark 1, 0 or -1 after it; an image may be called 'photo 1'."""
    is_name = tree.with_stem(PurePosixPath(line).name)
    return line if is_name else re.sub(r'\s+-?[01]$', '', line)


def _listed_name(line: str) -> str:
    """The path in a line of a list, without its suffix or a second path."""
    name = line.replace('\\', '/')
    first = PurePosixPath(name.split()[0])
    path = first if first.suffix.lower() in _SUFFIXES else PurePosixPath(name)
    return str(path.with_suffix('') if path.suffix.lower() in _SUFFIXES else path)


def _tails(path: str) -> list[str]:
    """The last parts of a path, all of them first: 'a/b/c', 'b/c', 'c'."""
    parts = path.split('/')
    return ['/'.join(parts[first:]) for first in range(len(parts))]


def _add(collector: Collector, file: Path, root: Element, split: str | None) -> None:
    name = text_of(root, 'filename')
    path = collector.own_image(file, name)
    stated = whole_number(text_of(root, 'size/width')), whole_number(text_of(root, 'size/height'))
    image = collector.image(file, path, split, stated, name or file.stem)
    if image is not None:
        collector.add(file, image, _objects(collector.labels, file, root))


def _objects(labels: Labels, file: Path, root: Element) -> Iterator[LabelledObject]:
    for element in root.iter('object'):
        label = text_of(element, 'name')
        corners = [number(text_of(element, f'bndbox/{key}')) for key in CORNERS]
        points = _outline(element)
        if not label:
            labels.report(file, 'objects without a class')
            continue
        if all(map(math.isfinite, corners)):
            box = box_between(*(value - HALF for value in corners))
        elif len(points) >= 4 and all(map(math.isfinite, points)):
            box = box_around(points)
        else:
            parts = ', '.join(part.tag for part in element)
            labels.report(file, NO_NUMBERS, f'bndbox of {label}; it has {parts}', label)
            continue
        ignored = DIFFICULT if is_set(text_of(element, DIFFICULT)) else ''
        yield LabelledObject(label, box, [points] if points else None, ignored)


def _outline(element: Element) -> list[float]:
    """Roboflow's polygon, or the corners of a box that roLabelImg turned; empty without any."""
    if element.find('robndbox') is not None:
        keys = ('cx', 'cy', 'w', 'h', 'angle')
        numbers = [number(text_of(element, f'robndbox/{key}')) for key in keys]
        return turned_box(*numbers) if all(map(math.isfinite, numbers)) else []
    places = (f'polygon/{axis}{i}' for i in count(1) for axis in 'xy')
    return list(map(number, takewhile(bool, (text_of(element, place) for place in places))))


DIFFICULT = 'difficult'
CORNERS = ('xmin', 'ymin', 'xmax', 'ymax')

FORMAT = Format(
    __name__,
    title='Pascal VOC',
    looks_for='XML files with <annotation>, and ImageSets/Main for splits',
    tasks=('detection',),
    order=40,
    find=_find,
    read=_read,
    note=(
        'Also from labelImg and Roboflow. The files are in `Annotations` or next to the images. '
        'The lists in `ImageSets/Main` may also have paths. Corners move by [half a '
        'pixel](#pascal-voc-and-half-a-pixel).'
    ),
)
