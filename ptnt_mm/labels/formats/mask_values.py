"""The values in mask files, and tables of the classes of values or colours."""

import csv
import re
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from ptnt_mm.labels.class_masks import IGNORED, NAMES
from ptnt_mm.labels.formats.format import number, read_text
from ptnt_mm.labels.tree import Tree
from ptnt_mm.utils.decoding import DECODERS
from ptnt_mm.utils.errors import UserError

_MANY = 300  # values; files with more are photographs, or have object numbers
_MAIN = 64  # values that cover nearly all of a mask with soft edges
_COLOUR = 1 << 24  # added to colours, beyond all greys
_PALETTE = 1 << 32  # added to the indices of palettes, which stand before their colours
_BLURRED = 32  # levels by which JPEG may change black and white
_NOISE = 16  # values without an area; fewer may be classes of thin objects
_NAMES = re.compile(
    r'(.*[_ -])?(class(es)?|labels?|categor(y|ies)|codes|names)([_ -]?(names?|list|map))?'
)
_COLOUR_LINE = re.compile(r'(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\d{1,3})[\s,]+(\D.*)')

MASK_DECODERS = [*DECODERS, 'GIF']


@dataclass(frozen=True)
class Table:
    """The classes of values, and of colours as :func:`colour_value` gives them, in a file."""

    names: dict[int, str] = field(default_factory=dict)
    colours: dict[int, str] = field(default_factory=dict)
    file: Path | None = None


def colour_value(red: int, green: int, blue: int) -> int:
    """The number that encodes a colour; a grey is itself."""
    return red if red == green == blue else _COLOUR | red << 16 | green << 8 | blue


def is_coloured(pixels: np.ndarray) -> bool:
    """Whether a mask has colours without a palette."""
    return bool(((pixels >= _COLOUR) & (pixels < _PALETTE)).any())


def is_of_palette(value: int) -> bool:
    """Whether a value is an index with its colour, of an image with a palette."""
    return value >= _PALETTE


def without_palette(value: int, by_colour: bool) -> int:
    """The index in a palette, or the colour there; other values are unchanged."""
    if not is_of_palette(value):
        return value
    if by_colour:
        return colour_value(value >> 16 & 255, value >> 8 & 255, value & 255)
    return value >> 24 & 255


def indices_of(pixels: np.ndarray) -> np.ndarray:
    """Values with the indices of a palette instead of its colours, (H, W)."""
    return np.where(pixels >= _PALETTE, pixels >> 24 & 255, pixels)


def shown_value(value: int) -> str:
    """A value in the notation of a table of colours."""
    rgb = (value >> 16 & 255, value >> 8 & 255, value & 255)
    return ','.join(map(str, rgb)) if value >= _COLOUR else str(value)


def count_values(pixels: np.ndarray) -> Counter[int]:
    """The number of pixels of each value in a mask, (H, W).

    Of masks with very many values, only the main ones are counted, if the others are soft edges.

    Raises:
        ValueError: if there are too many for classes.
    """
    if pixels.max(initial=0) < _COLOUR:
        counts = np.bincount(pixels.ravel())
        values = np.flatnonzero(counts)
        counts = counts[values]
    else:
        values, counts = np.unique(pixels, return_counts=True)
    found = Counter(dict(zip(values.tolist(), counts.tolist(), strict=True)))
    if len(found) > _MANY:
        main = found.most_common(_MAIN)
        if sum(count for _, count in main) < 0.9 * pixels.size:
            raise ValueError(f'it has {len(found)} values, too many for classes')
        return Counter(dict(main))
    return found


def read_values(file: Path) -> np.ndarray:
    """Read the values of a mask, (H, W) int64.

    Colours are given as by :func:`colour_value`, and the indices of a palette with their colours,
    as :func:`without_palette` takes them.

    Raises:
        Exception: of any kind, if it cannot be decoded.
    """
    pixels, is_jpeg = read_pixels(file)
    return _black_or_white(pixels) if is_jpeg else pixels


def _black_or_white(pixels: np.ndarray) -> np.ndarray:
    """The values before JPEG changed them."""
    if (np.minimum(pixels, abs(pixels - IGNORED)) > _BLURRED).mean() > 0.01:
        raise ValueError('JPEG has changed its values: store masks as PNG')
    return np.where(pixels > IGNORED // 2, IGNORED, 0)


def read_thinned(file: Path, side: int) -> np.ndarray | None:
    """Every n-th pixel of any image, (H, W), read as if it were a mask.

    Returns:
        At most ``side`` x ``side`` values; None if the file cannot be read.
    """
    try:
        pixels, is_jpeg = read_pixels(file)
    except Exception:  # decoders may raise anything
        return None
    if is_jpeg:
        with suppress(ValueError):  # a photograph
            pixels = _black_or_white(pixels)
    step = -(-max(pixels.shape) // side)
    return pixels[::step, ::step]


def read_pixels(file: Path) -> tuple[np.ndarray, bool]:
    """The values of any image, as of a mask, and whether JPEG may have changed them.

    Raises:
        Exception: of any kind, if it cannot be decoded.
    """
    with Image.open(file, formats=MASK_DECODERS) as stored:
        is_jpeg = stored.format == 'JPEG'
        if stored.mode in ('RGBA', 'LA', 'PA', 'CMYK', 'RGBX', 'YCbCr'):
            stored = stored.convert('L' if stored.mode == 'LA' else 'RGB')
        pixels = np.asarray(stored)
        palette = stored.getpalette('RGB') if stored.mode == 'P' else None
    if pixels.dtype == bool:
        pixels = pixels.astype(np.uint8) * 255
    if pixels.dtype.kind not in 'iu' or pixels.min(initial=0) < 0:
        raise ValueError(f'it has pixels of {pixels.dtype}')
    pixels = pixels.astype(np.int64)
    if palette is not None:
        colours = np.zeros((256, 3), np.int64)
        colours[: len(palette) // 3] = np.reshape(palette, (-1, 3))
        coded = _PALETTE | np.arange(256) << 24 | colours @ (1 << 16, 1 << 8, 1)
        return coded[pixels], is_jpeg
    if pixels.ndim == 3:
        red, green, blue = np.moveaxis(pixels, -1, 0)
        is_grey = (red == green) & (green == blue)
        pixels = np.where(is_grey, red, _COLOUR | red << 16 | green << 8 | blue)
    return pixels, is_jpeg


def colours_of(pixels: np.ndarray) -> np.ndarray:
    """Values of :func:`read_pixels` as colours, (H, W) -> (H, W, 3) float."""
    codes = np.where(pixels < _COLOUR, pixels * 0x010101, pixels)
    return np.stack([codes >> 16 & 255, codes >> 8 & 255, codes & 255], -1).astype(float)


def without_soft_edges(masks: Iterable[np.ndarray]) -> set[int] | None:
    """The grey values of areas, if all others are only in the soft edges between these.

    Blurred, resampled or compressed edges have values that no area has, between those of their
    neighbours.

    Args:
        masks: Values of masks, (H, W).

    Returns:
        The values of areas; None if there are no soft edges.
    """
    counts, inside, between = (np.zeros(256, np.int64) for _ in range(3))
    for pixels in masks:
        if pixels.max(initial=0) > IGNORED:
            return None
        grey = pixels.astype(np.uint8)
        darkest, lightest = cv2.erode(grey, np.ones((3, 3))), cv2.dilate(grey, np.ones((3, 3)))
        counts += np.bincount(grey.ravel(), minlength=256)
        inside += np.bincount(grey[darkest == lightest], minlength=256)
        between += np.bincount(grey[(darkest < grey) & (grey < lightest)], minlength=256)
    values = np.flatnonzero(counts)
    areas = values[inside[values] > 0.2 * counts[values]]
    if len(areas) == 1:  # objects that are too small to have an area
        areas = np.unique([*areas, values[0], values[-1]])
    edges = np.setdiff1d(values, areas)
    if len(areas) < 2 or len(edges) < 3:
        return None
    explained = between[edges]
    if len(edges) >= _NOISE:
        # Compression also changes values near edges, by a few levels; indices are far fewer.
        areas = _without_near(areas, counts)
        is_near = np.abs(edges[:, None] - areas).min(1) <= _BLURRED
        explained = np.where(is_near, counts[edges], explained)
    return set(areas.tolist()) if explained.sum() >= 0.8 * counts[edges].sum() else None


def _without_near(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The values without those that are near a more frequent one."""
    kept: list[int] = []
    for value in sorted(values.tolist(), key=lambda value: -counts[value]):
        if all(abs(value - other) > _BLURRED for other in kept):
            kept.append(value)
    return np.array(sorted(kept))


def read_table(tree: Tree) -> Table:
    """Read the table of classes next to the masks, if there is one."""
    for file in tree.with_suffix('.csv'):
        if table := _of_csv(file):
            return table
    for file in tree.with_suffix('.txt'):
        try:
            if table := _of_text(tree, file):
                return table
        except UserError:
            continue
    return Table()


def _of_text(tree: Tree, file: Path) -> Table | None:
    """A name on each line, in a file whose own name says so, or colours with names."""
    lines = [line.strip() for line in read_text(file).splitlines()]
    lines = [line for line in lines if line and not line.startswith('#')]
    if file.name == 'labelmap.txt':
        return _of_label_map(file, lines)
    colours = [found for line in lines if (found := _COLOUR_LINE.fullmatch(line))]
    if colours and len(colours) == len(lines):
        named = {colour_value(*map(int, line.group(1, 2, 3))): line[4] for line in colours}
        return Table(colours=named, file=file)
    if file.name != NAMES and not _NAMES.fullmatch(file.stem.casefold()):
        return None
    # LabelMe's lists begin with the name of ignored pixels, -1.
    names = [line for line in lines if line != '__ignore__']
    # Lists of images have such names, too.
    images = {name for image in tree.images for name in (image.name, image.stem)}
    are_names = names and all(name.split('/')[-1] not in images for name in names)
    return Table(dict(enumerate(names)), file=file) if are_names else None


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
        names = {int(number(row[0])): row[1] for row in body if row[0].isdigit()}
        return Table(names, file=file)
    name = next((i for i, cell in enumerate(head) if cell in ('name', 'class', 'label')), None)
    if name is None or not {'r', 'g', 'b'} <= set(head):
        return None
    channels = [head.index(channel) for channel in 'rgb']
    colours = {}
    for row in body:
        if all(row[i].isdigit() for i in channels):
            colours[colour_value(*(int(row[i]) for i in channels))] = row[name]
    return Table(colours=colours, file=file)


def _of_label_map(file: Path, lines: list[str]) -> Table:
    """CVAT's and Datumaro's `name:r,g,b:parts:actions`."""
    colours = {}
    for line in lines:
        name, _, rest = line.partition(':')
        channels = rest.partition(':')[0].split(',')
        if len(channels) == 3 and all(c.isdigit() for c in channels):
            colours[colour_value(*map(int, channels))] = name.strip()
    return Table(dict(enumerate(colours.values())), colours, file)
