"""Tables of boxes as CSV: a row for each object, with its image, its class and two corners.

A header names the columns, in any order. Without one, the columns are those of a tool that writes
none: keras-retinanet, SKU-110K, TensorFlow's scripts, or Google AutoML, whose corners are shares of
the image. Corners are taken as they are, as these tools do.
"""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath

from ptnt_mm.deploy.decoding import FORMATS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, first_few
from ptnt_mm.workbench.data.encodings import decoded_text, is_utf16
from ptnt_mm.workbench.data.labels import LabelledObject, Labels, box_between
from ptnt_mm.workbench.data.many_files import grouped
from ptnt_mm.workbench.data.reading.collector import (
    NO_NUMBERS,
    ONLY_CLASS,
    UNREADABLE,
    Collector,
    number,
    whole_number,
)
from ptnt_mm.workbench.data.reading.format import Format
from ptnt_mm.workbench.data.tree import Tree, split_named, split_of_all

_HEAD = 2**16  # bytes that show the columns
_ROWS = 50  # rows that show the columns of a table without a header
_CORNERS = ('xmin', 'ymin', 'xmax', 'ymax')
_NUMBERS = {*_CORNERS, 'width', 'height'}
_SIZE_OF_BOX = 'if the columns width and height have the size of the box, rename them'

_NAMES = {
    'file': 'filename filepath file imagename imagepath imagefile imgname imgpath image img path '
    'imageid',
    'class': 'classname class labelname label categoryname category object classid',
    'split': 'split set subset',
    'width': 'width imagewidth imgwidth',
    'height': 'height imageheight imgheight',
    'xmin': 'xmin x1 left xtl roix1',
    'ymin': 'ymin y1 top ytl roiy1',
    'xmax': 'xmax x2 right xbr roix2',
    'ymax': 'ymax y2 bottom ybr roiy2',
}
"""The names of columns by their roles, in lower case and without other characters.

Of several in a table, the first here counts.
"""

_OPEN_IMAGES = {'imageid', 'labelname', 'confidence'}
"""Its corners are shares of the image, its classes codes: see `unsupported.py`."""


@dataclass(frozen=True)
class _Layout:
    """The columns of a table, by their roles."""

    title: str
    columns: Mapping[str, int]
    count: int
    has_header: bool = False
    in_pixels: bool = True  # otherwise corners are shares of the image

    def cell(self, row: list[str], role: str) -> str:
        """The text of a cell; empty if there is no such column."""
        place = self.columns.get(role)
        return row[place].strip() if place is not None and place < len(row) else ''

    def fits(self, row: list[str]) -> bool:
        """Whether a row may be one of this table: an object, or an image without objects."""
        if len(row) != self.count or not _names_image(self.cell(row, 'file')):
            return False
        if not any(self.cell(row, role) for role in _CORNERS):
            return not self.cell(row, 'class')
        numbers = (self.cell(row, role) for role in _NUMBERS & self.columns.keys())
        return all(math.isfinite(number(text)) for text in numbers)


def _without_header(title: str, columns: str, in_pixels: bool = True) -> _Layout:
    roles = columns.split(',')
    places = {role: place for place, role in enumerate(roles) if role}
    return _Layout(title, places, len(roles), in_pixels=in_pixels)


_LAYOUTS = (
    _without_header('as for keras-retinanet', 'file,xmin,ymin,xmax,ymax,class'),
    _without_header("with TensorFlow's columns", 'file,width,height,class,xmin,ymin,xmax,ymax'),
    _without_header("with SKU-110K's columns", 'file,xmin,ymin,xmax,ymax,class,width,height'),
    _without_header('of Google AutoML', 'split,file,class,xmin,ymin,,,xmax,ymax,,', False),
    _without_header('of Google AutoML', 'file,class,xmin,ymin,,,xmax,ymax,,', False),
)


@dataclass(frozen=True)
class _Table:
    """A CSV file of boxes, and how it is written."""

    file: Path
    layout: _Layout
    delimiter: str


def _with_point(text: str, delimiter: str) -> str:
    """A number as Python writes it: a comma that ends no cell is a decimal one."""
    return text if delimiter == ',' else text.replace(',', '.')


@lru_cache(maxsize=1)
def _tables(tree: Tree) -> list[_Table]:
    """The same for recognition and reading."""
    found = []
    for file in tree.with_suffix('.csv', '.tsv'):
        try:
            with file.open('rb') as stream:
                head = _decoded(stream.read(_HEAD))
            delimiter = _delimiter(head)
            first = islice(_rows(head, delimiter), _ROWS)
            rows = [[_with_point(cell, delimiter) for cell in row] for _, row in first]
        except (OSError, csv.Error):
            continue
        if (layout := _layout(rows)) is not None:
            found.append(_Table(file, layout, delimiter))
    return found


def _find(tree: Tree) -> str:
    titles = grouped((table.layout.title, table.file) for table in _tables(tree))
    return '; '.join(f'{tree.first_few(files, 3)} {title}' for title, files in titles.items())


def _read(tree: Tree) -> Labels:
    tables = _tables(tree)
    in_pixels = any(table.layout.in_pixels for table in tables)
    collector = Collector(tree, in_pixels=in_pixels, if_other_size=_SIZE_OF_BOX)
    for table in tables:
        try:
            _add(collector, table)
        except (UserError, csv.Error, OSError) as error:
            collector.labels.report(table.file, UNREADABLE, str(error))
    labels = collector.finish()
    labels.classes.sort()
    return labels


def _add(collector: Collector, table: _Table) -> None:
    """Add the images of a table, each with all of its rows."""
    layout, labels = table.layout, collector.labels
    content = table.file.read_bytes()
    if not _is_unicode(content):
        labels.notes.append(f'{table.file.name} is not UTF-8: read as Windows-1252')
    rows = list(_rows(_decoded(content), table.delimiter))
    if layout.has_header:
        (_, header), *rows = rows
        others = (name for i, name in enumerate(header) if i not in layout.columns.values())
        unused = list(filter(None, map(str.strip, others)))
        if 'class' not in layout.columns and unused:
            what = f'no column is the class, so all objects are {ONLY_CLASS!r}'
            labels.notes.append(f'{table.file.name}: {what}; not used: {first_few(unused)}')
    by_image = grouped((layout.cell(row, 'file'), (line, row)) for line, row in rows)
    for line, _ in by_image.pop('', ()):
        labels.report(table.file, 'rows that name no image', f'line {line}')
    split = split_of_all(table.file) or collector.tree.split_of(table.file)
    unknown: Counter[str] = Counter()
    without: Counter[str] = Counter()
    for name, found in by_image.items():
        _, first = found[0]
        stated_split = layout.cell(first, 'split')
        own = split_named(stated_split) or split
        if stated_split and not split_named(stated_split):
            unknown[stated_split] += 1
        path = collector.tree.find_image(name, table.file.parent, own)
        stated = tuple(whole_number(layout.cell(first, role)) for role in ('width', 'height'))
        image = collector.image(table.file, path, own, stated, name)
        if image is not None:
            collector.add(table.file, image, _objects(labels, table, found, image.size))
            if _are_empty(layout, found):
                without.update(filter(None, {layout.cell(row, 'class') for _, row in found}))
    if names := [f'{name} ({number:,})' for name, number in without.items()]:
        what = 'images whose rows have no corners have no objects; the classes of these rows'
        labels.notes.append(f'warning: {table.file.name}: {what}: {first_few(names)}')
    if others := [f'{name} ({counted(number, "image")})' for name, number in unknown.items()]:
        what = 'splits other than train, val and test are not used'
        labels.notes.append(f'{table.file.name}: {what}: {first_few(others)}')


def _objects(
    labels: Labels, table: _Table, rows: list[tuple[int, list[str]]], size: tuple[int, int]
) -> Iterator[LabelledObject]:
    layout = table.layout
    if _are_empty(layout, rows):
        return
    for line, row in rows:
        label = layout.cell(row, 'class') if 'class' in layout.columns else ONLY_CLASS
        texts = [layout.cell(row, role) for role in _CORNERS]
        corners = [number(_with_point(text, table.delimiter)) for text in texts]
        shown = f'line {line}: {", ".join(row)[:80]}'
        if len(row) != layout.count:
            what = f'{len(row)} instead of {layout.count} in {shown}'
            labels.report(table.file, 'rows with a different number of columns', what, label)
        elif not any(texts) and layout.cell(row, 'class') == '':
            continue  # beside rows with objects
        elif not label:
            labels.report(table.file, 'objects without a class', shown)
        elif not all(map(math.isfinite, corners)):
            labels.report(table.file, NO_NUMBERS, shown, label)
        else:
            scale = (1, 1) if layout.in_pixels else size
            scaled = (value * scale[i % 2] for i, value in enumerate(corners))
            yield LabelledObject(label, box_between(*scaled))


def _are_empty(layout: _Layout, rows: list[tuple[int, list[str]]]) -> bool:
    """Whether all rows of an image are complete, and none has a corner: it has no objects."""
    return all(
        len(row) == layout.count and not any(layout.cell(row, role) for role in _CORNERS)
        for _, row in rows
    )


def _layout(rows: list[list[str]]) -> _Layout | None:
    """The columns of a table of boxes, from its first rows; None if it is another table."""
    if not rows:
        return None
    names = [_plain(name) for name in rows[0]]
    columns = _roles(names)
    if columns.keys() >= {'file', *_CORNERS}:
        is_other = set(names) >= _OPEN_IMAGES
        columns |= _class_column(names, rows[1:])
        return None if is_other else _Layout('with named columns', columns, len(names), True)
    if not any(_names_image(text) or math.isfinite(number(text)) for text in rows[0]):
        return None  # with a header that does not name corners, so numbers may be sizes
    fitting = [sum(map(layout.fits, rows)) for layout in _LAYOUTS]
    most = max(fitting)
    return _LAYOUTS[fitting.index(most)] if most * 2 >= len(rows) else None


def _class_column(names: list[str], rows: list[list[str]]) -> dict[str, int]:
    """The column of the class, of several the first with names; empty without any."""
    places = [names.index(name) for name in _NAMES['class'].split() if name in names]
    for place in places:
        if not all(math.isfinite(number(row[place])) for row in rows if len(row) == len(names)):
            return {'class': place}
    return {'class': places[0]} if places else {}


def _plain(name: str) -> str:
    return re.sub(r'[^a-z0-9]', '', name.lower())


def _roles(names: list[str]) -> dict[str, int]:
    """The column of each role that a name has."""
    return {
        role: names.index(name)
        for role, known in _NAMES.items()
        if (name := next((name for name in known.split() if name in names), None))
    }


def _names_image(text: str) -> bool:
    return PurePosixPath(text.lower()).suffix in FORMATS


def _delimiter(text: str) -> str:
    """The character that ends most cells of the first line."""
    first = text.lstrip().split('\n', 1)[0]
    return max(',;\t', key=first.count)


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with the number of its last line."""
    rows = csv.reader(io.StringIO(text, newline=''), delimiter=delimiter, skipinitialspace=True)
    return ((rows.line_num, row) for row in rows if any(map(str.strip, row)))


def _is_unicode(content: bytes) -> bool:
    try:
        decoded_text(content)
    except UnicodeDecodeError:
        return False
    return True


def _decoded(content: bytes) -> str:
    """Text as spreadsheets write it: UTF-8, UTF-16 with its mark, or Windows-1252."""
    if is_utf16(content):
        text = content.decode('utf-16', 'replace')
    else:
        text = content.decode('utf-8-sig' if _is_unicode(content) else 'cp1252', 'replace')
    return re.sub(r'^sep=.(?=\r?\n)', '', text)  # tells Excel the delimiter


FORMAT = Format(
    __name__,
    title='CSV boxes',
    looks_for=(
        'a CSV file with a row for each box, whose header names file, xmin, ymin, xmax and ymax'
    ),
    tasks=('detection',),
    order=100,
    find=_find,
    read=_read,
    note=(
        "[Tables of boxes](#tables-of-boxes), with other headers, too: TensorFlow's, "
        "keras-retinanet's, SKU-110K's, Google AutoML's. Commas, semicolons or tabs; also in "
        'Windows-1252.'
    ),
)
