"""The values in image files of more than 8 bits, and the grey levels that loading leaves."""

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from ptnt_mm.deploy.decoding import DECODERS, Range, bits_of, read_values, scaled

FEW_LEVELS = 64
"""Of 256 grey levels. The values of 14 bits in 16 leave this many."""

_FEW_IN_RANGE = 16
"""The same in a stated range, which suits all images of a set: some of them are darker."""

_PAGES = 'several pages, of which only the first is used'
_MORE_CHANNELS = 'more than three channels, of which only the first three are used'
_DARKENED = 'transparency that makes them darker when loaded, as TIFFs'
_ONLY_ALPHA = 'nothing but transparency, which is not loaded'

_PAGE_KIND, _SAMPLES, _EXTRA = 254, 277, 338  # TIFF's tags

_SAMPLE = 2**20  # values of an image that are counted
_TAIL = 0.001  # share of the darkest and of the brightest values that may be cut off
COMMON = 0.1
"""Share of the images with few levels that is reported: a few dark ones are usual."""

_ODD_IMAGES = 0.05  # share of the images that may be brighter than the range


@dataclass(frozen=True)
class PixelValues:
    """The values in an image file of more than 8 bits.

    Attributes:
        type: Their type, such as 'uint16'.
        lowest: The smallest value.
        highest: The largest value.
        low: The value that one in a thousand is below.
        high: The value that one in a thousand is above.
        levels: The number of different values.
    """

    type: str
    lowest: float
    highest: float
    low: float
    high: float
    levels: int

    def __str__(self) -> str:
        """The type and the values, such as '16-bit, values from 0 to 1600'."""
        return f'{self.depth}, values from {self.lowest:g} to {self.highest:g}'

    @property
    def depth(self) -> str:
        """Their type in words, such as '16-bit' and '32-bit float'."""
        kind = np.dtype(self.type)
        suffix = dict(f=' float', i=' signed').get(kind.kind, '')
        return f'{8 * kind.itemsize}-bit{suffix}'

    @property
    def levels_of_hosts(self) -> int:
        """The grey levels that mmcv's loader leaves between low and high; 0 if it cannot read them.

        It keeps the upper 8 bits of 16; negative values wrap around.
        """
        kind = np.dtype(self.type)
        if kind.kind == 'f' or kind.itemsize != 2 or self.lowest < 0:
            return 0
        return min(int(self.high) // 256 - int(self.low) // 256 + 1, self.levels)


def measure_values(content: bytes) -> PixelValues | None:
    """Measure the values of an image file; None for 8 bits.

    Raises any exception if it cannot be decoded.
    """
    with Image.open(io.BytesIO(content), formats=DECODERS) as stored:
        if bits_of(stored) <= 8:
            return None
    values = read_values(content)
    values = values[np.isfinite(values)] if values.dtype.kind == 'f' else values.ravel()
    if not values.size:
        raise ValueError('it has no finite value')
    some = values[:: max(values.size // _SAMPLE, 1)]
    low, high = np.quantile(some, (_TAIL, 1 - _TAIL), method='nearest')
    return PixelValues(
        str(values.dtype),
        values.min().item(),
        values.max().item(),
        low.item(),
        high.item(),
        len(np.unique(some)),
    )


def few_levels(
    content: bytes, values: PixelValues, loaded: np.ndarray, stated: Range | None
) -> str:
    """Describe the values of an image if a better range leaves twice as many grey levels, else ''.

    Args:
        content: Its file.
        values: Those of the file.
        loaded: Its pixels as loaded, (H, W, C) or (H, W).
        stated: The range that it was loaded in; None for the hosts' loading.
    """
    left = len(np.unique(loaded))
    if left > (FEW_LEVELS if stated is None else _FEW_IN_RANGE) or values.levels < 2 * left:
        return ''
    best = choose_range([values])
    if best is None or len(np.unique(scaled(read_values(content), best))) < 2 * left:
        return ''
    return f'{values}: {left} of 256 grey levels are left'


def oddity(content: bytes) -> tuple[str, str] | None:
    """Describe what the hosts' loading drops or changes in an intact image file, with a detail.

    It completes 'images with ...'.

    Alpha is dropped in every format but TIFF, where colours are multiplied by it.
    """
    with Image.open(io.BytesIO(content), formats=DECODERS) as image:
        if image.format in ('GIF', 'TIFF'):
            pages = _pages(image)
            if pages > 1:
                return _PAGES, f'{pages} pages'
        if image.format == 'TIFF':
            samples, extra = image.tag_v2.get(_SAMPLES, 1), image.tag_v2.get(_EXTRA, ())
            if samples > 3 and extra and not set(extra) & {1, 2}:
                return _MORE_CHANNELS, f'{samples} channels'
        if image.mode not in ('RGBA', 'LA', 'PA'):
            return None
        *colours, (lowest, highest) = image.getextrema()
        if image.format == 'TIFF' and lowest < 255 and image.mode == 'RGBA':
            return _DARKENED, f'alpha from {lowest} to {highest} of 255'
        if lowest < highest and all(low == high for low, high in colours):
            return _ONLY_ALPHA, f'alpha from {lowest} to {highest} of 255, and one colour'
    return None


def choose_range(images: Sequence[PixelValues]) -> Range | None:
    """The range of values to load, or None if the hosts' loading leaves enough grey levels.

    Integers get the smallest number of bits that holds them, such as 0 to 4095, because further
    images of the same camera may use all of them. Floats get 0 to 1, or 0 to 255. If the values
    fill less than a quarter of that, or are negative, the range is the measured one, rounded.
    The brightest 0.1 % of the values, and 5 % of the images, may be outside.
    """
    low = min(image.low for image in images)
    high = float(np.quantile([i.high for i in images], 1 - _ODD_IMAGES, method='higher'))
    is_float = any(np.dtype(image.type).kind == 'f' for image in images)
    loads = all(image.levels_of_hosts for image in images)
    if loads and (high - low) / 256 >= FEW_LEVELS or high <= low:
        return None
    if is_float:
        usual = (0.0, 1.0) if high <= 1 else (0.0, 255.0)
    else:
        usual = (0, 2 ** max(int(high).bit_length(), 8) - 1)
    if low >= usual[0] and high <= usual[1] and (high - low) * 4 >= usual[1] - usual[0]:
        return usual
    # Two digits of the width; 0.1 in float32 is not rounded up to 0.11.
    unit = 10.0 ** (math.floor(math.log10(high - low)) - 1)
    low, high = round(low / unit, 4), round(high / unit, 4)
    ends = math.floor(low) * unit, math.ceil(high) * unit
    return tuple(float(f'{x:.6g}') for x in ends) if is_float else tuple(map(round, ends))


def _pages(image: Image.Image) -> int:
    """The number of pages that have the size of the first, without previews and masks."""
    number, size, pages = getattr(image, 'n_frames', 1), image.size, 1
    for page in range(1, number):
        image.seek(page)
        kind = image.tag_v2.get(_PAGE_KIND, 0) if image.format == 'TIFF' else 0
        pages += image.size == size and not kind & ~2
    image.seek(0)
    return pages
