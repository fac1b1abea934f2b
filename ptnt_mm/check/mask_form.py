"""The format of class masks: what mmseg cannot read, or reads as other values."""

import io

import numpy as np
from PIL import Image

from ptnt_mm.check.data_sets import ImageFile
from ptnt_mm.check.images import size_text
from ptnt_mm.data.image_files import size_as_read
from ptnt_mm.labels.class_masks import VALUES
from ptnt_mm.utils.decoding import DECODERS, why_unreadable
from ptnt_mm.utils.findings import Fault, Severity
from ptnt_mm.utils.text import first_few

_BROKEN = Fault('masks not readable', Severity.ERROR, 'copy or write them again')
_COLOURED = Fault(
    'masks with several channels',
    Severity.ERROR,
    'write the index of the class, not a colour, into an 8-bit PNG of one channel; if all channels '
    'are equal, keep one; for a palette (P), take imdecode_backend out of LoadAnnotations',
)
_LOSSY = Fault('masks are JPEGs', Severity.ERROR, 'JPEG changes values: draw them again as PNGs')
_STRETCHED = Fault(
    'grey masks of fewer than 8 bits',
    Severity.ERROR,
    'decoding stretches 0, 1, 2 to 0, 17, 34 or 0, 85, 170: write 8 bits, or a palette',
)
_CUT = Fault(
    'masks with values that do not fit into 8 bits',
    Severity.ERROR,
    'mmseg keeps their lowest 8 bits silently: 256 becomes 0, 65535 255',
)
_WIDE = Fault(
    'masks of more than 8 bits',
    Severity.WARNING,
    'their values fit into 8 bits; write them as 8 bits, or other programs may read them '
    'differently',
)
_OF_OTHER_SIZE = Fault(
    'masks not the size of their images',
    Severity.ERROR,
    'draw them on the images as they are, or resize them with nearest-neighbour interpolation',
)

FAULTS = (_BROKEN, _COLOURED, _LOSSY, _STRETCHED, _CUT, _WIDE, _OF_OTHER_SIZE)
"""All faults in the format of a mask, in the order of the report."""


def open_mask(image: ImageFile, backend: str) -> tuple[np.ndarray | None, list[tuple[Fault, str]]]:
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
            mode, size, is_lossy = opened.mode, opened.size, opened.format == 'JPEG'
            # Greys of 2 or 4 bits are stretched to 8. A TIFF's arguments are several.
            how = str(opened.tile[0].args) if opened.tile else ''
        pixels = imfrombytes(content, flag='unchanged', backend=backend)
        if pixels is None:
            raise ValueError('not an image')
    except Exception as err:  # decoders may raise anything
        return None, [(_BROKEN, f'{path} ({why_unreadable(err)})')]
    changed, faults = [], []
    if is_lossy:
        changed.append((_LOSSY, str(path)))
    if 'L;2' in how or 'L;4' in how:
        changed.append((_STRETCHED, str(path)))
    if pixels.shape[2:] == (1,):
        # mmseg drops it, too.
        pixels = pixels[..., 0]
    with np.errstate(invalid='ignore'):
        # mmseg casts like this, whatever the values.
        loaded = pixels.astype(np.uint8)
    if pixels.ndim > 2:
        changed.append((_COLOURED, f'{path} ({mode})'))
    elif (wide := np.unique(pixels[pixels != loaded])[:VALUES]).size:
        changed.append((_CUT, f'{path} ({first_few(map(str, wide.tolist()))})'))
    elif pixels.itemsize > 1:
        faults.append((_WIDE, str(path)))
    if (image_size := size_as_read(image.path)) not in (None, size):
        sizes = f'{size_text(size)}, its image {size_text(image_size)}'
        faults.append((_OF_OTHER_SIZE, f'{path} is {sizes}'))
    counts = None if changed else np.bincount(loaded.ravel(), minlength=VALUES)
    return counts, changed + faults
