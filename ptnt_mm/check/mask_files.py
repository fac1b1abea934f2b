"""Mask files: of one channel, of 8 bits, of the size of their images."""

import warnings
from collections.abc import Iterator

from PIL import Image

from ptnt_mm.check.images import size_text
from ptnt_mm.check.mask_lists import SegmentationData, loading_of
from ptnt_mm.data.class_masks import Broken, Mask, open_mask
from ptnt_mm.utils.findings import Finding, error, report_wrong, warning
from ptnt_mm.utils.many_files import on_threads
from ptnt_mm.utils.text import some


def open_masks(data: SegmentationData) -> list[Mask | Broken]:
    """Decode every mask that is there."""
    there = [image for image in data.images if image.mask is not None and image.mask.is_file()]
    loading = filter(None, map(loading_of, data.pipelines.values()))
    backend = next(loading, {}).get('imdecode_backend', 'pillow')
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', Image.DecompressionBombWarning)
        title = f'Opening {data.name} masks'
        opened = on_threads(lambda image: open_mask(image.mask, image.path, backend), there, title)
        return list(opened)


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
    what = 'masks with values that do not fit into 8 bits'
    advice = 'mmseg keeps their lowest 8 bits silently: 256 becomes 0, 65535 255'
    yield from report_wrong(error, where, wide, total, what, advice)
    if not wide:
        more = [str(mask.path) for mask in masks if mask.is_wide]
        advice = 'their values fit into 8 bits; write them so, or others will read them otherwise'
        yield from report_wrong(warning, where, more, total, 'masks of more than 8 bits', advice)
