"""KITTI's text files, which NVIDIA TAO has too: 15 values for each object, or 16 with a score.

Regions called DontCare have objects without labels: detections there count neither as correct nor
as false, of any class.
"""

import math
from collections.abc import Iterator
from pathlib import Path

from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.data.labels import LabelledImage, LabelledObject, Labels, box_between
from ptnt_mm.workbench.data.reading.collector import NO_NUMBERS, Collector, number, read_text
from ptnt_mm.workbench.data.reading.format import Format
from ptnt_mm.workbench.data.tree import Tree

_LINE = rb'(?m)^[A-Za-z]\S*(?:[ \t]+-?\d[\d.eE+-]*){14,15}[ \t]*\r?$'
_BOX = slice(4, 8)  # left, top, right, bottom in pixels from 0
_COUNTS = (15, 16)
_DONT_CARE = 'dontcare'


def _find(tree: Tree) -> str:
    files = tree.containing('.txt', _LINE)
    return f'{counted(len(files), "text file")} of 15 values on a line' if files else ''


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    found: list[tuple[Path, LabelledImage, list[str]]] = []
    for file, text in collector.read(_files(tree), read_text):
        # label_2 has the labels of image_2, and image_3 shows the same scene.
        name = f'{file.parent.name.replace("label", "image")}/{file.stem}'
        image = collector.image(file, tree.find_image(name, file.parent), name=name)
        if image is not None:
            found.append((file, image, text.splitlines()))
    rows = [line.split() for *_, lines in found for line in lines]
    names = {words[0] for words in rows if len(words) in _COUNTS}
    classes = sorted(name for name in names if name.lower() != _DONT_CARE)
    for file, image, lines in found:
        collector.add(file, image, _objects(collector.labels, file, lines, classes))
    labels = collector.finish()
    labels.classes.sort()
    return labels


def _files(tree: Tree) -> list[Path]:
    """The label files, and the other text files in their folders: an empty one has no objects."""
    files = tree.containing('.txt', _LINE)
    folders = {file.parent for file in files}
    return [file for file in tree.with_suffix('.txt') if file.parent in folders]


def _objects(
    labels: Labels, file: Path, lines: list[str], classes: list[str]
) -> Iterator[LabelledObject]:
    """The objects of a file, and its DontCare regions as ignored ones of every class."""
    for place, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        shown, label = f'line {place}: {line[:80]}', words[0]
        corners = [number(word) for word in words[_BOX]]
        if len(words) not in _COUNTS:
            what = f'{len(words)} instead of 15 in {shown}'
            labels.report(file, 'lines with a different number of values', what, label)
        elif not all(map(math.isfinite, corners)):
            labels.report(file, NO_NUMBERS, shown, label)
        elif label.lower() == _DONT_CARE:
            box = box_between(*corners)
            yield from (LabelledObject(name, box, ignored=label) for name in classes)
        else:
            yield LabelledObject(label, box_between(*corners))


FORMAT = Format(
    __name__,
    title='KITTI',
    looks_for='text files with 15 values on each line, in label_2 or labels',
    tasks=('detection',),
    order=90,
    find=_find,
    read=_read,
    note=(
        'Also from NVIDIA TAO. Lines may end with a score; `label_2` belongs to `image_2`. Only '
        'the box is read. `DontCare` regions [count neither for nor '
        'against](#problems-in-the-data) a detection of any class. An empty file is an image '
        'without objects.'
    ),
)
