"""Class masks as mmseg reads them: their values, and what it cannot read."""

import io

import numpy as np
from PIL import Image

from ptnt_mm.check.data_sets import ImageFile
from ptnt_mm.check.images import size_text
from ptnt_mm.data.image_files import size_as_read
from ptnt_mm.labels.class_masks import (
    BROKEN,
    COLOURED,
    CUT,
    MISREAD,
    OF_OTHER_SIZE,
    RULES,
    VALUES,
    MaskFile,
)
from ptnt_mm.labels.model import Rule
from ptnt_mm.utils.decoding import DECODERS, why_unreadable
from ptnt_mm.utils.text import first_few


def open_mask(image: ImageFile, backend: str) -> tuple[np.ndarray | None, list[tuple[Rule, str]]]:
    """Decode the mask of an image; ``backend`` is mmcv's decoder for masks.

    Returns:
        Pixels of each value that mmseg reads, (256,), or None if they are not the values of the
        file; and its faults with evidence.
    """
    # mmseg decodes with mmcv: Pillow reads a palette's indices, OpenCV its colours.
    from mmcv import imfrombytes

    path = image.mask
    try:
        content = path.read_bytes()
        with Image.open(io.BytesIO(content), formats=DECODERS) as opened:
            mode, size, is_jpeg = opened.mode, opened.size, opened.format == 'JPEG'
            # Greys of 2 or 4 bits are stretched to 8. A TIFF's arguments are several.
            how = str(opened.tile[0].args) if opened.tile else ''
        pixels = imfrombytes(content, flag='unchanged', backend=backend)
        if pixels is None:
            raise ValueError('not an image')
    except Exception as err:  # decoders may raise anything
        return None, [(BROKEN, f'{path} ({why_unreadable(err)})')]
    if pixels.shape[2:] == (1,):
        # mmseg drops it, too.
        pixels = pixels[..., 0]
    bits = next((bits for bits in (2, 4) if f'L;{bits}' in how), 8)
    mask = MaskFile(size, size_as_read(image.path), pixels, is_jpeg, bits)
    evidence = {
        COLOURED: lambda: f' ({mode})',
        CUT: lambda: f' ({first_few(map(str, mask.lost_values.tolist()))})',
        OF_OTHER_SIZE: lambda: f' is {size_text(size)}, its image {size_text(mask.image_size)}',
    }
    faults = [rule for rule in RULES if rule.holds(mask)]
    is_misread = any(fault in MISREAD for fault in faults)
    counts = None if is_misread else np.bincount(mask.loaded.ravel(), minlength=VALUES)
    return counts, [(fault, f'{path}{evidence.get(fault, str)()}') for fault in faults]
