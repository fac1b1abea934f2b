"""Decode image files with Pillow, which refuses truncated files; OpenCV does not."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from ptnt_mm.utils.errors import UserError

FORMATS = {
    '.bmp': 'BMP',
    '.jpeg': 'JPEG',
    '.jpg': 'JPEG',
    '.pgm': 'PPM',
    '.png': 'PNG',
    '.ppm': 'PPM',
    '.tif': 'TIFF',
    '.tiff': 'TIFF',
    '.webp': 'WEBP',
}
"""Pillow's names of the formats that are read, by suffix: those of mmdet."""

DECODERS = sorted(set(FORMATS.values()))
"""For ``Image.open(..., formats=DECODERS)``: otherwise Pillow starts Ghostscript for an EPS."""


def read_rgb(file: Path | str) -> np.ndarray:
    """Read an image with the same pixels as the hosts' loading.

    It is rotated by its EXIF data, grey is repeated in three channels, alpha is dropped, and 16
    bits are scaled to 8.

    Returns:
        (H, W, 3) uint8, RGB.

    Raises:
        UserError: if it is not an image, is damaged, or has pixels other than 8 or 16 bits. The
            message begins with the file.
    """
    try:
        with Image.open(file, formats=DECODERS) as stored:
            image = ImageOps.exif_transpose(stored)
        if image.mode.startswith(('I', 'F')):
            image = Image.fromarray(_to_8_bits(np.asarray(image)))
        return np.asarray(image.convert('RGB'))
    except UnidentifiedImageError as error:
        reason = 'is not an image, or damaged' if Path(file).stat().st_size else 'is empty'
        raise UserError(f'{file} {reason}') from error
    except Exception as error:  # a damaged file can make the reader raise anything
        raise UserError(f'{file} cannot be read: {why_unreadable(error)}') from error


def why_unreadable(err: Exception) -> str:
    """Why a file cannot be read; Pillow repeats the path, and may show an object's address."""
    if isinstance(err, OSError) and err.strerror:
        return err.strerror
    return 'not an image' if 'cannot identify' in str(err) else str(err) or type(err).__name__


def _to_8_bits(pixels: np.ndarray) -> np.ndarray:
    """Scale 16 bits to 8: white, 65535, is 257 times 255. Pillow's conversion clips instead."""
    if pixels.dtype.kind == 'f' or pixels.min() < 0 or pixels.max() > 65535:
        raise ValueError(f'it has pixels of {pixels.dtype}: expected 8 or 16 bits')
    return ((pixels.astype(np.uint32) + 128) // 257).astype(np.uint8)
