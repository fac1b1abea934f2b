"""Masks of class indices: read as in mmseg; written with colours and a file of class names."""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.data.image_files import size_as_read
from ptnt_mm.utils.colours import PALETTE
from ptnt_mm.utils.decoding import DECODERS, why_unreadable

VALUES = 256  # mmseg reads masks as 8-bit numbers

IGNORED = 255
"""The index of ignored pixels, which mmseg excludes from loss and evaluation."""

NAMES = 'mask_classes.txt'  # a class name on each line, in the order of the indices


@dataclass(frozen=True)
class Mask:
    """The content of a mask file.

    Attributes:
        fault: Why it cannot be read, and then all else is unknown; empty if it can be read.
        size: (width, height) in pixels.
        image_size: Size of its image as mmseg reads it; None if the image cannot be read.
        mode: Pillow's name for its kind of pixels.
        counts: Pixels of each value that mmseg reads, (256,); None if it has several channels.
        wide: Values that do not fit into the 8 bits which mmseg reads.
        is_wide: Whether it has more than 8 bits, whatever its values.
        is_lossy: Whether its format changes values.
        is_stretched: Whether decoding multiplies its values, because they have 2 or 4 bits.
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
        """Whether mmseg reads its values unchanged."""
        changed = self.wide or self.is_lossy or self.is_stretched
        return self.counts is not None and not changed


def open_mask(path: Path, image: Path, backend: str) -> Mask:
    """Decode a mask and read the size of its image; ``backend`` is mmcv's decoder for masks."""
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
    """Write the class names beside the masks of a folder."""
    (folder / NAMES).write_text(''.join(f'{name}\n' for name in names), encoding='utf-8')


def _palette(count: int) -> list[int]:
    """A palette for Pillow: black, our colours repeated, and white at the end."""
    colours = [(0, 0, 0), *(PALETTE[i % len(PALETTE)] for i in range(count - 1))]
    colours += [(255, 255, 255)] * (IGNORED + 1 - count)
    return [channel for colour in colours for channel in colour]
