"""Mask files: opened as mmseg does, and found to be of one channel, of 8 bits, of their size."""

import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.check.files_on_disk import on_threads, reason
from ptnt_mm.check.images import size_as_read, size_text
from ptnt_mm.check.mask_lists import Pair, SegmentationData, loading_of
from ptnt_mm.utils.findings import Finding, error, report_wrong, warning
from ptnt_mm.utils.text import some

VALUES = 256  # mmseg reads masks as 8-bit numbers
_COLOURS = 256  # a mask with more colours is no drawing of classes


@dataclass(frozen=True)
class Mask:
    """What a mask file holds.

    Attributes:
        path: The file.
        size: (width, height) in pixels.
        image_size: That of its image as mmseg reads it; None if the image cannot be read.
        mode: Pillow's name for its kind of pixels.
        counts: Pixels of each value that mmseg reads, (256,); None if it has several channels.
        wide: Values that do not fit into the 8 bits which mmseg reads.
        is_wide: Whether it is of more than 8 bits, whatever its values.
        is_lossy: Whether its format changes values.
        is_stretched: Whether decoding multiplies its values, as they are of 2 or 4 bits.
        colours: (R, G, B) of a mask with several channels; none if they are many.
    """

    path: Path
    size: tuple[int, int]
    image_size: tuple[int, int] | None
    mode: str
    counts: np.ndarray | None = None
    wide: tuple[int, ...] = ()
    is_wide: bool = False
    is_lossy: bool = False
    is_stretched: bool = False
    colours: frozenset[tuple[int, int, int]] = frozenset()

    @property
    def holds_indices(self) -> bool:
        """Whether mmseg reads its values as they are."""
        changed = self.wide or self.is_lossy or self.is_stretched
        return self.counts is not None and not changed


@dataclass(frozen=True)
class Broken:
    """A mask that cannot be read.

    Attributes:
        path: The file.
        reason: Why not.
    """

    path: Path
    reason: str


def open_masks(data: SegmentationData) -> list[Mask | Broken]:
    """Decode every mask that is there."""
    there = [pair for pair in data.pairs if pair.mask is not None and pair.mask.is_file()]
    loading = filter(None, map(loading_of, data.pipelines.values()))
    backend = next(loading, {}).get('imdecode_backend', 'pillow')
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', Image.DecompressionBombWarning)
        title = f'Opening {data.name} masks'
        return list(on_threads(partial(open_mask, backend=backend), there, title))


def open_mask(pair: Pair, backend: str) -> Mask | Broken:
    """Decode a mask.

    Args:
        pair: The mask, which is there, and its image.
        backend: mmcv's decoder, as LoadAnnotations names it.
    """
    # mmseg reads with it: a palette's indices with Pillow, its colours with OpenCV.
    from mmcv import imfrombytes

    try:
        content = pair.mask.read_bytes()
        with Image.open(io.BytesIO(content)) as opened:
            mode, size, is_lossy = opened.mode, opened.size, opened.format == 'JPEG'
            # Greys of 2 or 4 bits are stretched to 8. A TIFF's arguments are several.
            how = str(opened.tile[0].args) if opened.tile else ''
            is_stretched = 'L;2' in how or 'L;4' in how
        pixels = imfrombytes(content, flag='unchanged', backend=backend)
        if pixels is None:
            return Broken(pair.mask, 'no image')
    except Exception as err:  # decoders complain in every way there is
        return Broken(pair.mask, reason(err))
    form = dict(is_lossy=is_lossy, is_stretched=is_stretched)
    mask = partial(Mask, pair.mask, size, _size_of(pair.image), mode, **form)
    if pixels.shape[2:] == (1,):
        # mmseg takes it off, too.
        pixels = pixels[..., 0]
    if pixels.ndim != 2:
        return mask(colours=_colours(pixels))
    with np.errstate(invalid='ignore'):
        # As mmseg does, whatever the values.
        loaded = pixels.astype(np.uint8)
    wide = tuple(np.unique(pixels[pixels != loaded])[:_COLOURS].tolist())
    counts = np.bincount(loaded.ravel(), minlength=VALUES)
    return mask(counts=counts, wide=wide, is_wide=pixels.itemsize > 1)


def check_mask_files(data: SegmentationData, opened: list[Mask | Broken]) -> Iterator[Finding]:
    """Look at the form of masks, whatever classes they hold."""
    broken = [f'{mask.path} ({mask.reason})' for mask in opened if isinstance(mask, Broken)]
    advice = 'copy or write them again'
    yield from report_wrong(error, data.name, broken, len(opened), 'masks not readable', advice)
    masks = [mask for mask in opened if isinstance(mask, Mask)]
    coloured = [mask for mask in masks if mask.counts is None]
    if coloured:
        named = (f'{mask.path} ({mask.mode})' for mask in coloured)
        what, advice = 'masks with several channels', _instead_of_channels(data, coloured)
        yield from report_wrong(error, data.name, named, len(masks), what, advice)
    yield from _changed(data, masks)
    other = (
        f'{mask.path} is {size_text(mask.size)}, its image {size_text(mask.image_size)}'
        for mask in masks
        if mask.image_size not in (None, mask.size)
    )
    what = 'masks not of the size of their images'
    advice = 'draw them on the images as they are, or resize them, to the nearest index'
    yield from report_wrong(error, data.name, other, len(masks), what, advice)


def _instead_of_channels(data: SegmentationData, masks: list[Mask]) -> str:
    """What to write in place of masks with several channels."""
    colours = frozenset().union(*(mask.colours for mask in masks))
    palette = {tuple(colour) for colour in data.built.metainfo.get('palette') or ()}
    if all(mask.mode == 'P' for mask in masks):
        return "take imdecode_backend out of LoadAnnotations: Pillow reads a palette's indices"
    if colours and all(red == green == blue for red, green, blue in colours):
        return 'the channels are the same: keep one, as an 8-bit PNG in greys'
    if colours and colours <= palette:
        return (
            "the colours are those of metainfo.palette: write each colour's place in it, from 0, "
            'into an 8-bit PNG of one channel'
        )
    return 'write the index of the class, not a colour, into an 8-bit PNG of one channel'


def _changed(data: SegmentationData, masks: list[Mask]) -> Iterator[Finding]:
    """Masks whose values are not those that were drawn, or that others may read otherwise."""
    where, total = data.name, len(masks)
    lossy = [str(mask.path) for mask in masks if mask.is_lossy]
    if lossy:
        what = f'{len(lossy)} of {total} masks are JPEGs: {some(lossy)}'
        yield error(where, what, 'JPEG changes values: draw them anew, as PNGs')
    stretched = [str(mask.path) for mask in masks if mask.is_stretched]
    what = 'masks of less than 8 bits, in greys'
    advice = 'decoding stretches 0, 1, 2 to 0, 17, 34 or 0, 85, 170: write 8 bits, or a palette'
    yield from report_wrong(error, where, stretched, total, what, advice)
    wide = [f'{mask.path} ({some(map(str, mask.wide))})' for mask in masks if mask.wide]
    what = 'masks with values that are no 8-bit numbers'
    advice = 'mmseg keeps their lowest 8 bits silently: 256 becomes 0, 65535 255'
    yield from report_wrong(error, where, wide, total, what, advice)
    if not wide:
        more = [str(mask.path) for mask in masks if mask.is_wide]
        advice = 'their values fit into 8 bits; write them so, or others will read them otherwise'
        yield from report_wrong(warning, where, more, total, 'masks of more than 8 bits', advice)


def _size_of(image: Path) -> tuple[int, int] | None:
    """The size of an image as mmseg reads it; its pixels are not decoded."""
    try:
        with Image.open(image) as opened:
            return size_as_read(opened)
    except Exception:  # another check reports it
        return None


def _colours(pixels: np.ndarray) -> frozenset[tuple[int, int, int]]:
    """The colours of an image (H, W, C) in BGR order, as RGB; none if they are many."""
    if pixels.shape[2] < 3 or pixels.dtype != np.uint8:
        return frozenset()
    blue, green, red = (pixels[..., i].astype(np.int64) for i in range(3))
    packed = np.unique(red << 16 | green << 8 | blue)
    if len(packed) > _COLOURS:
        return frozenset()
    return frozenset((number >> 16, number >> 8 & 255, number & 255) for number in packed.tolist())
