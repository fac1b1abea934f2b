"""Read masks of class indices as mmseg does, and turn their values into its labels."""

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.data.image_files import size_as_read
from ptnt_mm.data.index_masks import IGNORED
from ptnt_mm.utils.decoding import DECODERS, why_unreadable

VALUES = 256  # mmseg reads masks as 8-bit numbers


@dataclass(frozen=True)
class Mask:
    """What a mask file holds.

    Attributes:
        fault: Why it cannot be read; empty if it can. All else is unknown then.
        size: (width, height) in pixels.
        image_size: That of its image as mmseg reads it; None if the image cannot be read.
        mode: Pillow's name for its kind of pixels.
        counts: Pixels of each value that mmseg reads, (256,); None if it has several channels.
        wide: Values that do not fit into the 8 bits which mmseg reads.
        is_wide: Whether it is of more than 8 bits, whatever its values.
        is_lossy: Whether its format changes values.
        is_stretched: Whether decoding multiplies its values, as they are of 2 or 4 bits.
    """

    path: Path
    fault: str = ''
    size: tuple[int, int] | None = None
    image_size: tuple[int, int] | None = None
    mode: str = ''
    counts: np.ndarray | None = None
    wide: tuple[int, ...] = ()
    is_wide: bool = False
    is_lossy: bool = False
    is_stretched: bool = False

    @property
    def holds_indices(self) -> bool:
        """Whether mmseg reads its values as they are."""
        changed = self.wide or self.is_lossy or self.is_stretched
        return self.counts is not None and not changed


def open_mask(path: Path, image: Path, backend: str) -> Mask:
    """Decode a mask.

    Args:
        path: The mask, which is there.
        image: Its image.
        backend: mmcv's decoder, as LoadAnnotations names it.
    """
    # mmseg decodes with mmcv: Pillow reads a palette's indices, OpenCV its colours.
    from mmcv import imfrombytes

    try:
        content = path.read_bytes()
        with Image.open(io.BytesIO(content), formats=DECODERS) as opened:
            mode, size, is_lossy = opened.mode, opened.size, opened.format == 'JPEG'
            # Greys of 2 or 4 bits are stretched to 8. A TIFF's arguments are several.
            how = str(opened.tile[0].args) if opened.tile else ''
        pixels = imfrombytes(content, flag='unchanged', backend=backend)
    except Exception as err:  # decoders may raise anything
        return Mask(path, why_unreadable(err))
    if pixels is None:
        return Mask(path, 'not an image')
    if pixels.shape[2:] == (1,):
        # mmseg drops it, too.
        pixels = pixels[..., 0]
    counts, wide = None, ()
    if pixels.ndim == 2:
        with np.errstate(invalid='ignore'):
            # mmseg casts like this, whatever the values.
            loaded = pixels.astype(np.uint8)
        wide = tuple(np.unique(pixels[pixels != loaded])[:VALUES].tolist())
        counts = np.bincount(loaded.ravel(), minlength=VALUES)
    return Mask(
        path,
        size=size,
        image_size=size_as_read(image),
        mode=mode,
        counts=counts,
        wide=wide,
        is_wide=pixels.ndim == 2 and pixels.itemsize > 1,
        is_lossy=is_lossy,
        is_stretched='L;2' in how or 'L;4' in how,
    )


def label_of_each_value(reduce_zero_label: bool, label_map: Mapping[int, int] | None) -> np.ndarray:
    """The labels of the values 0 to 255, (256,), as mmseg's loading turns them.

    Args:
        reduce_zero_label: Whether 0 is ignored, and the classes begin at 1.
        label_map: From a class's place among all of the data set to that among those asked for.
    """
    labels = np.arange(VALUES)
    if reduce_zero_label:
        labels -= 1
        # mmseg's label for the value 0 and for classes that are left out.
        labels[[0, IGNORED]] = IGNORED
    if label_map:
        labels = np.array([label_map.get(label, label) for label in labels.tolist()])
    return labels
