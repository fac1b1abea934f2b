"""Class masks, the labels of mmseg: rules for their files, their values, and writing them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from ptnt_mm.deploy.decoding import DECODERS
from ptnt_mm.utils.colours import PALETTE
from ptnt_mm.utils.findings import FindingKind, Severity
from ptnt_mm.workbench.data.labels import LabelRule, Outcome

VALUES = 256  # mmseg reads masks as 8-bit numbers

IGNORED = 255
"""The index of ignored pixels, which mmseg excludes from loss and evaluation."""

BLURRED = 32
"""Levels by which JPEG may change black and white."""

NAMES = 'mask_classes.txt'  # a class name on each line, in the order of the indices

NO_CLASS = 'masks with values that are not classes'

_MANY = 300  # values; files with more are photographs, or have object numbers
_MAIN = 64  # values that cover nearly all of a mask with soft edges
_COLOUR = 1 << 24  # added to colours, beyond all greys
_PALETTE = 1 << 32  # added to the indices of palettes, which stand before their colours
_WHITE = 65535  # of 16-bit masks in black and white, which are read as 0 and 255
_NOISE = 16  # values without an area; fewer may be classes of thin objects


@dataclass(frozen=True)
class MaskFile:
    """The file of a class mask.

    Attributes:
        size: (width, height) in pixels.
        image_size: The same of its image; None if unknown.
        pixels: What mmseg decodes, (H, W) or (H, W, C).
        is_jpeg: Whether it is a JPEG.
        bits: Bits of a grey pixel; 8 if it has colours.
    """

    size: tuple[int, int]
    image_size: tuple[int, int] | None
    pixels: np.ndarray
    is_jpeg: bool
    bits: int

    @cached_property
    def loaded(self) -> np.ndarray:
        """The pixels as mmseg casts them, whatever their values, uint8."""
        with np.errstate(invalid='ignore'):
            return self.pixels.astype(np.uint8)

    @property
    def is_wide(self) -> bool:
        """Whether it has one channel of more than 8 bits."""
        return self.pixels.ndim == 2 and self.pixels.itemsize > 1

    @property
    def lost_values(self) -> np.ndarray:
        """The first values that are not those of the file after loading, (N,)."""
        return np.unique(self.pixels[self.pixels != self.loaded])[:VALUES]


NOT_READABLE = FindingKind('masks not readable', Severity.ERROR, 'copy or write them again')
COLOURED = LabelRule(
    'masks with several channels',
    Severity.ERROR,
    'write the index of the class, not a colour, into an 8-bit PNG of one channel; if all channels '
    'are equal, keep one; for a palette (P), take imdecode_backend out of LoadAnnotations',
    outcome=Outcome.KEPT,  # by a table of colours
    applies_to=lambda mask: mask.pixels.ndim > 2,
)
LOSSY = LabelRule(
    'masks are JPEGs',
    Severity.ERROR,
    'JPEG changes values: draw them again as PNGs',
    outcome=Outcome.LEFT_OUT,  # but for black and white, which can be restored
    applies_to=lambda mask: mask.is_jpeg,
)
STRETCHED = LabelRule(
    'grey masks of fewer than 8 bits',
    Severity.ERROR,
    'decoding stretches 0, 1, 2 to 0, 17, 34 or 0, 85, 170: write 8 bits, or a palette',
    outcome=Outcome.KEPT,
    applies_to=lambda mask: mask.bits in (2, 4),
)
CUT = LabelRule(
    'masks with values that do not fit into 8 bits',
    Severity.ERROR,
    'mmseg keeps their lowest 8 bits silently: 256 becomes 0, 65535 255',
    outcome=Outcome.KEPT,
    applies_to=lambda mask: mask.pixels.ndim == 2 and mask.lost_values.size > 0,
)
WIDE = LabelRule(
    'masks of more than 8 bits',
    Severity.WARNING,
    'their values fit into 8 bits; write them as 8 bits, or other programs may read them '
    'differently',
    outcome=Outcome.KEPT,
    applies_to=lambda mask: mask.is_wide and not mask.lost_values.size,
)
OF_OTHER_SIZE = LabelRule(
    'masks not the size of their images',
    Severity.ERROR,
    'draw them on the images as they are, or resize them with nearest-neighbour interpolation',
    outcome=Outcome.LEFT_OUT,
    applies_to=lambda mask: mask.image_size not in (None, mask.size),
)

MASK_FILE_RULES = (COLOURED, LOSSY, STRETCHED, CUT, WIDE, OF_OTHER_SIZE)
"""What mmseg cannot read, or reads as other values.

Each predicate takes a :class:`MaskFile`. ``ptnt new`` writes the masks that it keeps again, as
mmseg reads them.
"""

MISREAD = (COLOURED, LOSSY, STRETCHED, CUT)
"""The rules of files whose values mmseg does not see."""


class UnusableMaskError(ValueError):
    """A mask whose values are not those of classes.

    Attributes:
        what: What is wrong, as in :class:`FindingKind`.
    """

    def __init__(self, what: str, detail: str = ''):
        super().__init__(detail)
        self.what = what


def label_of_each_value(reduce_zero_label: bool, label_map: Mapping[int, int] | None) -> np.ndarray:
    """The labels that mmseg's loading assigns to the values 0 to 255, (256,).

    Args:
        reduce_zero_label: Whether 0 is ignored, and the classes begin at 1.
        label_map: From an index among all classes of the data set to that among the chosen ones.
    """
    labels = np.arange(VALUES)
    if reduce_zero_label:
        labels -= 1
        # mmseg's label for the value 0 and for excluded classes.
        labels[[0, IGNORED]] = IGNORED
    if label_map:
        labels = np.array([label_map.get(label, label) for label in labels.tolist()])
    return labels


def colour_value(red: int, green: int, blue: int) -> int:
    """The number that encodes a colour; a grey is itself."""
    return red if red == green == blue else _COLOUR | red << 16 | green << 8 | blue


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
        UnusableMaskError: if there are too many for classes.
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
            raise UnusableMaskError('masks with too many values for classes', f'{len(found)}')
        return Counter(dict(main))
    return found


def read_values(file: Path) -> np.ndarray:
    """Read the values of a mask, (H, W) int64.

    Colours are given as by :func:`colour_value`, and the indices of a palette with their colours,
    as :func:`without_palette` takes them.

    Raises:
        Exception: of any kind, if it cannot be decoded.
    """
    pixels, is_jpeg = _read_pixels(file)
    if pixels.max(initial=0) == _WHITE and not ((pixels > 0) & (pixels < _WHITE)).any():
        return np.where(pixels, IGNORED, 0)
    return _black_or_white(pixels) if is_jpeg else pixels


def _black_or_white(pixels: np.ndarray) -> np.ndarray:
    """The values before JPEG changed them."""
    if (np.minimum(pixels, abs(pixels - IGNORED)) > BLURRED).mean() > 0.01:
        raise UnusableMaskError(
            LOSSY.what,
            'JPEG changed its values: export it again, as a PNG; converting the file does not help',
        )
    return np.where(pixels > IGNORED // 2, IGNORED, 0)


def read_thinned(file: Path, side: int) -> np.ndarray | None:
    """Every n-th pixel of any image, (H, W), read as if it were a mask.

    Returns:
        At most ``side`` x ``side`` values; None if the file cannot be read.
    """
    try:
        pixels, is_jpeg = _read_pixels(file)
    except Exception:  # decoders may raise anything
        return None
    if is_jpeg:
        with suppress(ValueError):  # a photograph
            pixels = _black_or_white(pixels)
    step = -(-max(pixels.shape) // side)
    return pixels[::step, ::step]


def _read_pixels(file: Path) -> tuple[np.ndarray, bool]:
    """The values of any image, as of a mask, and whether JPEG may have changed them."""
    with Image.open(file, formats=DECODERS) as stored:
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
        is_near = np.abs(edges[:, None] - areas).min(1) <= BLURRED
        explained = np.where(is_near, counts[edges], explained)
    return set(areas.tolist()) if explained.sum() >= 0.8 * counts[edges].sum() else None


def _without_near(values: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The values without those that are near a more frequent one."""
    kept: list[int] = []
    for value in sorted(values.tolist(), key=lambda value: -counts[value]):
        if all(abs(value - other) > BLURRED for other in kept):
            kept.append(value)
    return np.array(sorted(kept))


def save_mask(pixels: np.ndarray, count: int, file: Path) -> None:
    """Write the index of each pixel, (H, W) uint8.

    Args:
        pixels: Below `count`, or IGNORED.
        count: The number of classes.
        file: A PNG; its folder is created.
    """
    mask = Image.fromarray(pixels, mode='P')
    mask.putpalette(_palette(count))
    file.parent.mkdir(parents=True, exist_ok=True)
    mask.save(file, optimize=True)


def write_names(folder: Path, names: Sequence[str]) -> None:
    """Write the class names next to the masks of a folder."""
    (folder / NAMES).write_text(''.join(f'{name}\n' for name in names), encoding='utf-8')


def _palette(count: int) -> list[int]:
    """A palette for Pillow: black, our colours repeated, and white at the end."""
    colours = [(0, 0, 0), *(PALETTE[i % len(PALETTE)] for i in range(count - 1))]
    unused = [(255, 255, 255) for _ in range(count, IGNORED + 1)]
    return [channel for colour in (*colours, *unused) for channel in colour]


def voc_colour(index: int) -> tuple[int, int, int]:
    """The colour of an index in the palette of Pascal VOC: (0, 0, 0), (128, 0, 0), ..."""
    # The bits of the index go to the channels in turn, the lowest first, as their highest ones.
    return tuple(
        sum((index >> 3 * place + channel & 1) << 7 - place for place in range(3))
        for channel in range(3)
    )
