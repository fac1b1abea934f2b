"""The values in mask files, and tables of the classes of values or colours."""

import csv
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.labels.class_masks import IGNORED, NAMES
from ptnt_mm.labels.formats.format import number, read_text
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.decoding import DECODERS
from ptnt_mm.utils.errors import UserError

_MANY = 300  # values; files with more are photographs, or have object numbers
_COLOUR = 1 << 24  # added to colours, beyond all greys
_BLURRED = 32  # levels by which JPEG may change black and white


@dataclass(frozen=True)
class Table:
    """The classes of values, and of colours as :func:`colour_value` gives them."""

    names: dict[int, str] = field(default_factory=dict)
    colours: dict[int, str] = field(default_factory=dict)


def colour_value(red: int, green: int, blue: int) -> int:
    """The number that encodes a colour; a grey is itself."""
    return red if red == green == blue else _COLOUR | red << 16 | green << 8 | blue


def shown_value(value: int) -> str:
    """A value in the notation of a table of colours."""
    rgb = (value >> 16 & 255, value >> 8 & 255, value & 255)
    return ','.join(map(str, rgb)) if value >= _COLOUR else str(value)


def different_values(pixels: np.ndarray) -> frozenset[int]:
    """The different values of a mask, (H, W).

    Raises:
        ValueError: if there are too many for classes.
    """
    values = frozenset(np.unique(pixels).tolist())
    if len(values) > _MANY:
        raise ValueError(f'it has {len(values)} values, too many for classes')
    return values


def read_values(file: Path) -> np.ndarray:
    """Read the values of a mask, (H, W) int64; colours as :func:`colour_value` gives them.

    Raises:
        Exception: of any kind, if it cannot be decoded.
    """
    with Image.open(file, formats=DECODERS) as stored:
        is_jpeg = stored.format == 'JPEG'
        if stored.mode in ('RGBA', 'LA', 'PA', 'CMYK', 'RGBX', 'YCbCr'):
            stored = stored.convert('L' if stored.mode == 'LA' else 'RGB')
        pixels = np.asarray(stored)
    if pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * 255
    if pixels.dtype.kind not in 'iu' or pixels.min(initial=0) < 0:
        raise ValueError(f'it has pixels of {pixels.dtype}')
    pixels = pixels.astype(np.int64)
    if pixels.ndim == 3:
        red, green, blue = np.moveaxis(pixels, -1, 0)
        is_grey = (red == green) & (green == blue)
        pixels = np.where(is_grey, red, _COLOUR | red << 16 | green << 8 | blue)
    if is_jpeg:
        if (np.minimum(pixels, abs(pixels - IGNORED)) > _BLURRED).mean() > 0.01:
            raise ValueError('JPEG has changed its values: store masks as PNG')
        pixels = np.where(pixels > IGNORED // 2, IGNORED, 0)
    return pixels


def read_table(tree: Tree) -> Table:
    """Read the table of classes next to the masks, if there is one."""
    for file in tree.with_suffix('.csv'):
        if table := _of_csv(file):
            return table
    for file in tree.with_suffix('.txt'):
        try:
            if file.name == 'labelmap.txt':
                return _of_label_map(file)
            if file.name in (NAMES, 'classes.txt', 'labels.txt'):
                lines = [line.strip() for line in read_text(file).splitlines()]
                return Table(dict(enumerate(filter(None, lines))))
        except UserError:
            continue
    return Table()


def _of_csv(file: Path) -> Table | None:
    """Roboflow's `Pixel Value, Class`, or `name, r, g, b`; None for any other table."""
    try:
        rows = list(csv.reader(read_text(file).splitlines()))
    except (UserError, csv.Error):
        return None
    if len(rows) < 2:
        return None
    head = [cell.strip().casefold() for cell in rows[0]]
    body = [[cell.strip() for cell in row] for row in rows[1:] if len(row) >= len(head)]
    if head[:2] == ['pixel value', 'class']:
        return Table({int(number(row[0])): row[1] for row in body if row[0].isdigit()})
    name = next((i for i, cell in enumerate(head) if cell in ('name', 'class', 'label')), None)
    if name is None or not {'r', 'g', 'b'} <= set(head):
        return None
    channels = [head.index(channel) for channel in 'rgb']
    colours = {}
    for row in body:
        if all(row[i].isdigit() for i in channels):
            colours[colour_value(*(int(row[i]) for i in channels))] = row[name]
    return Table(colours=colours)


def _of_label_map(file: Path) -> Table:
    """CVAT's and Datumaro's `name:r,g,b:parts:actions`."""
    colours = {}
    for line in read_text(file).splitlines():
        name, _, rest = line.partition(':')
        channels = rest.partition(':')[0].split(',')
        if not line.startswith('#') and len(channels) == 3 and all(c.isdigit() for c in channels):
            colours[colour_value(*map(int, channels))] = name.strip()
    return Table(dict(enumerate(colours.values())), colours)
