"""Run lengths in CSV files, as on Kaggle.

They are pairs of numbers: a first pixel, counted from 1 down the columns, and a length.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from ptnt_mm.deploy.decoding import FORMATS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import first_few
from ptnt_mm.workbench.data.labels import LabelledImage, LabelledObject, Labels
from ptnt_mm.workbench.data.masks import box_of
from ptnt_mm.workbench.data.reading.collector import (
    NO_NUMBERS,
    ONLY_CLASS,
    Collector,
    read_text,
)
from ptnt_mm.workbench.data.reading.format import Format
from ptnt_mm.workbench.data.tree import Tree, split_of_all

_SUFFIXES = '|'.join(map(re.escape, FORMATS))
_WITH_CLASS = re.compile(rf'(.+?(?:{_SUFFIXES}))_(.+)', re.IGNORECASE)  # Image_Label
# Columns, in lower case and without other characters than letters; the first that is found counts.
_NAMES = ('image(?!height|width|size).*', 'file.*', 'id')
_RUNS = ('encodedpixels.*', 'rle.*')


def _files(tree: Tree) -> list[Path]:
    """The tables, without examples of what to submit."""
    files = tree.containing('.csv', rb'(?i)\A([^\n;\t]*,)?[^a-z\n,;\t]*(encoded_?pixels|rle)')
    return [file for file in files if 'submission' not in file.name]


def _find(tree: Tree) -> str:
    files = tree.first_few(_files(tree), 3)
    return f'{files} with run lengths' if files else ''


def _read(tree: Tree) -> Labels:
    collector = Collector(tree)
    for file, by_image in collector.read(_files(tree), _rows, csv.Error):
        split = split_of_all(file) or tree.split_of(file)
        for name, rows in by_image.items():
            path = tree.find_image(name, file.parent, split)
            image = collector.image(file, path, split, name=name)
            if image is not None:
                collector.add(file, image, _objects(collector.labels, file, image, rows))
    return collector.finish()


def _rows(file: Path) -> dict[str, list[tuple[str, str]]]:
    """The class and the run lengths of each object, by the name of its image."""
    found: dict[str, list[tuple[str, str]]] = {}
    text = read_text(file)
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))
    reader = csv.DictReader(io.StringIO(text))
    columns = {re.sub('[^a-z]', '', name.lower()): name for name in reader.fieldnames or ()}
    of_images, of_runs = (_first(columns, patterns) for patterns in (_NAMES, _RUNS))
    if of_images is None or of_runs is None:
        raise UserError(
            f'its columns are {first_few(columns.values())}: expected ImageId and EncodedPixels, '
            'or id and rle'
        )
    for row in reader:
        cells = {column: row[name] or '' for column, name in columns.items()}
        name, runs = cells[of_images], cells[of_runs]
        label = cells.get('classid') or cells.get('class') or ONLY_CLASS
        if with_class := _WITH_CLASS.fullmatch(name):
            name, label = with_class.groups()
        found.setdefault(name, []).append((label, runs))
    return found


def _first(columns: Iterable[str], patterns: Iterable[str]) -> str | None:
    """The column that fits the first pattern that any fits."""
    fits = (column for pattern in patterns for column in columns if re.fullmatch(pattern, column))
    return next(fits, None)


def _objects(
    labels: Labels, file: Path, image: LabelledImage, rows: list[tuple[str, str]]
) -> Iterator[LabelledObject]:
    width, height = image.size
    for label, text in rows:
        if text.strip() in ('', '-1'):
            continue  # an image without objects
        try:
            starts, lengths = np.array(text.split(), np.int64).reshape(-1, 2).T
            edges = np.stack([starts - 1, starts + lengths - 1], axis=1).ravel()
            counts = np.diff(edges, prepend=0, append=width * height)
            if (counts < 0).any():
                raise ValueError('runs that overlap, or are outside the image')
        except (ValueError, OverflowError) as error:
            labels.report(file, NO_NUMBERS, f'{label} in {image.path.name}: {error}', label)
            continue
        mask = dict(size=[height, width], counts=counts.tolist())
        yield LabelledObject(label, box_of(mask), mask)


FORMAT = Format(
    __name__,
    title='Run lengths in CSV',
    looks_for='CSV files with the columns ImageId and EncodedPixels, or id and rle',
    tasks=('instance', 'detection', 'semantic'),
    order=110,
    find=_find,
    read=_read,
    note=(
        'As on Kaggle: pairs of a first pixel, counted from 1 down the columns, and a length. The '
        'column of images may also be `Image_Label`. The class is in the column `ClassId` or '
        '`class`, or stands after the name of the image, else `object`. Files with `submission` in '
        'their name are not read.'
    ),
)
