"""Tables of the classes of masks: a name for each value, for each colour, or for both."""

import csv
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import first_few
from ptnt_mm.workbench.data.class_masks import IGNORED, NAMES, colour_value
from ptnt_mm.workbench.data.reading.collector import read_text
from ptnt_mm.workbench.data.tree import Tree

LABEL_MAP = 'labelmap.txt'  # CVAT's and Datumaro's

_NAMES = re.compile(
    r'(.*[_ -])?(class(es)?|labels?|categor(y|ies)|codes|names)([_ -]?(names?|list|map|dict))?'
)
_GAP = r'[\s,;:=()\[\]"]'
_ROW = re.compile(rf'{_GAP}*((?:\d+{_GAP}+)*)(\S|\S.*?\S)((?:{_GAP}+\d+)*){_GAP}*')
_LONGEST = 200  # characters of a line with a name and numbers
_COLUMNS = (
    ('value', 'pixelvalue', 'index', 'id', 'n', 'classid', 'labelid'),
    ('name', 'classname', 'labelname', 'label', 'class', 'category'),
    ('r', 'red'),
    ('g', 'green'),
    ('b', 'blue'),
)
"""Names of the columns of a table of colours, in lower case and without other characters."""

Row = tuple[tuple[int, ...], str]


@dataclass(frozen=True)
class Table:
    """The classes of values, and of colours as :func:`colour_value` gives them, in a file."""

    names: dict[int, str] = field(default_factory=dict)
    colours: dict[int, str] = field(default_factory=dict)
    file: Path | None = None
    notes: tuple[str, ...] = ()


def read_table(tree: Tree) -> Table:
    """Read the table of classes next to the masks, if there is one.

    Raises:
        UserError: if a file that is called like a table cannot be read, or if two of one name
            contradict each other, as in sets that were put together.
    """
    tables, unreadable = [], []
    for file in (*tree.with_suffix('.csv'), *tree.with_suffix('.txt')):
        is_csv = file.suffix.lower() == '.csv'
        if tables and file.name != tables[0].file.name:
            continue
        try:
            if table := _of_csv(tree, file) if is_csv else _of_text(tree, file):
                tables.append(table)
        except (csv.Error, ValueError):  # int refuses very long numbers
            continue
        except UserError as error:
            if _is_called_like_a_table(file):
                unreadable.append(f'{file}, which has names of classes, cannot be read: {error}')
    if unreadable and not tables:
        raise UserError(unreadable[0])
    first = tables[0] if tables else Table()
    for other in tables[1:]:
        if _contradict(first, other):
            named = tree.first_few([first.file, other.file])
            raise UserError(
                f'{tree.root}: {named} have different classes for one value or colour: give all '
                'masks the same table, or pass one of the folders'
            )
    return first


def _contradict(one: Table, other: Table) -> bool:
    """Whether two tables have different classes for a value or a colour."""
    pairs = (one.names, other.names), (one.colours, other.colours)
    return any(ours[key] != theirs[key] for ours, theirs in pairs for key in ours.keys() & theirs)


def _is_called_like_a_table(file: Path) -> bool:
    return file.name in (NAMES, LABEL_MAP) or bool(_NAMES.fullmatch(file.stem.casefold()))


def _of_text(tree: Tree, file: Path) -> Table | None:
    """A name on each line, in a file whose own name says so, or colours with names."""
    lines = [line.strip() for line in read_text(file).strip().splitlines()]
    every_line = [line for line in lines if not line.startswith('#')]
    lines = list(filter(None, every_line))
    if file.name == LABEL_MAP:
        return _of_label_map(file, lines)
    if table := _of_rows(tree, file, list(map(_in_row, lines))):
        return table
    if not _is_called_like_a_table(file):
        return None
    # LabelMe's lists begin with the name of ignored pixels, -1. An empty line is a value, too.
    in_order = {i: n for i, n in enumerate(n for n in every_line if n != '__ignore__') if n}
    names = _values_of(lines) or in_order
    return Table(names, file=file) if names and not _are_of_images(tree, names.values()) else None


def _are_of_images(tree: Tree, names: Collection[str]) -> bool:
    """Whether some names are those of images, of which there are lists, too."""
    images = {name for image in tree.images for name in (image.name, image.stem)}
    return any(name.split('/')[-1] in images for name in names)


def _in_row(line: str) -> Row | None:
    """The name in a line, and the numbers before and after it; None without a name."""
    found = _ROW.fullmatch(line[:_LONGEST])
    if not found or found[2].isdecimal():
        return None
    return tuple(map(int, re.findall(r'\d+', f'{found[1]} {found[3]}'))), found[2]


def _in_cells(cells: Sequence[str]) -> Row | None:
    """The same for a row of a CSV file."""
    if len(cells) == 1:  # with other separators
        return _in_row(cells[0])
    names = [cell for cell in cells if cell and not cell.isdecimal()]
    return (tuple(map(int, filter(str.isdecimal, cells))), names[0]) if len(names) == 1 else None


def _of_rows(tree: Tree, file: Path, rows: Sequence[Row | None]) -> Table | None:
    """A table with a colour, and perhaps a value, in each row; the first may be a header."""
    rows = rows[1:] if rows and not (rows[0] and rows[0][0]) else rows
    if not rows or None in rows or len({len(numbers) for numbers, _ in rows}) != 1:
        return None
    columns = list(zip(*(numbers for numbers, _ in rows), strict=True))
    values = _values_among(columns)
    channels = [column for column in columns if column is not values][:3]
    names = [name for _, name in rows]
    is_colour = len(channels) == 3 and max(map(max, channels)) <= IGNORED
    if not is_colour or _are_of_images(tree, names):
        return None
    if values and len(set(names)) == 1:  # the number is a part of the name: class 0
        names = [f'{name} {value}' for name, value in zip(names, values, strict=True)]
    colours = zip(zip(*channels, strict=True), names, strict=True)
    return _of_colours(file, list(colours), values)


def _values_of(lines: Sequence[str]) -> dict[int, str]:
    """The names in lines such as '0: background', by value; empty if numbers may belong to names.

    The values must follow each other, from 0 or 1; after the names, from 0.
    """
    rows = list(map(_in_row, lines))
    if len(rows) < 2 or not all(row and len(row[0]) == 1 for row in rows):
        return {}
    names = {value: name for (value,), name in rows}
    first, values = min(names), sorted(names.keys() - {IGNORED})
    is_first = first == 0 or (first == 1 and all(line[:1].isdecimal() for line in lines))
    follow = values == list(range(first, first + len(values)))
    return names if is_first and follow and len({*names.values()}) == len(rows) else {}


def _values_among(columns: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The column before or after a colour that has the values in masks; empty without one."""
    ends = columns[:1] + columns[3:4] if len(columns) > 3 else []
    counted_up = (c for c in ends if all(b - a == 1 for a, b in pairwise(c)))
    ascending = (c for c in ends[:1] if all(a < b for a, b in pairwise(c)))
    return next((column for column in (*counted_up, *ascending)), ())


def _of_colours(file: Path, rows: list[Row], values: Sequence[int] = ()) -> Table:
    """A table of red, green and blue with the name of their class; the first of a colour counts.

    ``values`` are those of masks that have no colours.
    """
    colours: dict[int, str] = {}
    others: dict[str, None] = {}  # an ordered set
    for channels, name in rows:
        if colours.setdefault(colour_value(*channels), name) != name:
            others[f'{name} ({",".join(map(str, channels))})'] = None
    what = f'{file.name}: colours that an earlier class has, so these are never found: '
    notes = (what + first_few(others),) if others else ()
    names = {value: name for value, (_, name) in zip(values, rows, strict=False)}
    return Table(names, colours, file, notes)


def _of_csv(tree: Tree, file: Path) -> Table | None:
    """Roboflow's `Pixel Value, Class`, or a name and a colour; None for any other table."""
    reader = csv.reader(read_text(file).splitlines())
    rows = [[cell.strip() for cell in row] for row in reader if row]
    if len(rows) < 2:
        return None
    head = [re.sub('[^a-z]', '', cell.casefold()) for cell in rows[0]]
    if head[:2] == ['pixelvalue', 'class']:
        rows = [row for row in rows if len(row) > 1 and row[0].isdecimal()]
        names = {int(row[0]): row[1] for row in rows}
        return Table(names, file=file)
    value, *places = (next(filter(head.__contains__, names), None) for names in _COLUMNS)
    if None in places:
        table = _of_rows(tree, file, list(map(_in_cells, rows)))
        if table or value is None or places[0] is None:
            return table
        columns = head.index(value), head.index(places[0])
        cells = ([row[i] for i in columns] for row in rows[1:] if len(row) >= len(head))
        names = {int(number): name for number, name in cells if number.isdecimal()}
        return Table(names, file=file) if not _are_of_images(tree, names.values()) else None
    name, *channels = map(head.index, places)
    numbers = channels if value is None else [*channels, head.index(value)]
    rows = [row for row in rows[1:] if len(row) >= len(head)]
    rows = [row for row in rows if all(row[i].isdecimal() for i in numbers)]
    colours = [(tuple(int(row[i]) for i in channels), row[name]) for row in rows]
    return _of_colours(file, colours, [int(row[i]) for row in rows for i in numbers[3:]])


def _of_label_map(file: Path, lines: list[str]) -> Table:
    """Lines such as `name:r,g,b:parts:actions`."""
    rows: list[Row] = []
    for line in lines:
        name, _, rest = line.partition(':')
        channels = rest.partition(':')[0].split(',')
        if len(channels) == 3 and all(c.isdecimal() for c in channels):
            rows.append((tuple(map(int, channels)), name.strip()))
    return _of_colours(file, rows, range(len(rows)))
