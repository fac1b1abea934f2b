"""Mask files: of one channel, of 8 bits, of the size of their images."""

import warnings
from collections.abc import Iterator

from PIL import Image

from ptnt_mm.check.images import size_text
from ptnt_mm.check.mask_lists import SegmentationData, loading_of
from ptnt_mm.data.class_masks import Mask, open_mask
from ptnt_mm.utils.findings import Finding, error, report_wrong, warning
from ptnt_mm.utils.many_files import on_threads
from ptnt_mm.utils.text import some


def open_masks(data: SegmentationData) -> list[Mask]:
    """Decode every mask that is there."""
    there = [image for image in data.images if image.mask is not None and image.mask.is_file()]
    loading = filter(None, map(loading_of, data.pipelines.values()))
    backend = next(loading, {}).get('imdecode_backend', 'pillow')
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', Image.DecompressionBombWarning)
        title = f'Opening {data.name} masks'
        opened = on_threads(lambda image: open_mask(image.mask, image.path, backend), there, title)
        return list(opened)


def check_mask_files(data: SegmentationData, opened: list[Mask]) -> Iterator[Finding]:
    """Look at the form of masks, whatever classes they hold."""
    broken = [f'{mask.path} ({mask.fault})' for mask in opened if mask.fault]
    advice = 'copy or write them again'
    yield from report_wrong(error, data.name, broken, len(opened), 'masks not readable', advice)
    masks = [mask for mask in opened if not mask.fault]
    coloured = [mask for mask in masks if mask.counts is None]
    if all(mask.mode == 'P' for mask in coloured):
        instead = "take imdecode_backend out of LoadAnnotations: Pillow reads a palette's indices"
    else:
        instead = (
            'write the index of the class, not a colour, into an 8-bit PNG of one channel; if all '
            'channels are equal, keep one'
        )
    for report, wrong, what, advice in (
        (
            error,
            [f'{mask.path} ({mask.mode})' for mask in coloured],
            'masks with several channels',
            instead,
        ),
        (
            error,
            [mask.path for mask in masks if mask.is_lossy],
            'masks are JPEGs',
            'JPEG changes values: draw them anew, as PNGs',
        ),
        (
            error,
            [mask.path for mask in masks if mask.is_stretched],
            'masks of less than 8 bits, in greys',
            'decoding stretches 0, 1, 2 to 0, 17, 34 or 0, 85, 170: write 8 bits, or a palette',
        ),
        (
            error,
            [f'{mask.path} ({some(map(str, mask.wide))})' for mask in masks if mask.wide],
            'masks with values that do not fit into 8 bits',
            'mmseg keeps their lowest 8 bits silently: 256 becomes 0, 65535 255',
        ),
        (
            warning,
            [mask.path for mask in masks if mask.is_wide and not mask.wide],
            'masks of more than 8 bits',
            'their values fit into 8 bits; write them so, or others will read them otherwise',
        ),
        (
            error,
            [
                f'{mask.path} is {size_text(mask.size)}, its image {size_text(mask.image_size)}'
                for mask in masks
                if mask.image_size not in (None, mask.size)
            ],
            'masks not of the size of their images',
            'draw them on the images as they are, or resize them, to the nearest index',
        ),
    ):
        yield from report_wrong(report, data.name, map(str, wrong), len(masks), what, advice)
