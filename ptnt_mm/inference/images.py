"""Image files: finding them in a folder, reading and encoding them."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from ptnt_mm.data.image_files import why_unreadable
from ptnt_mm.utils.errors import UserError

# Those of mmdet. Named, because Pillow would start Ghostscript for an .eps.
_FORMATS = {
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

_QUALITY = 95


@dataclass(frozen=True)
class Images:
    """Image files below a folder.

    Attributes:
        root: The folder.
        files: The images, relative to it.
        skipped: Files of other kinds, relative to it.
    """

    root: Path
    files: tuple[Path, ...]
    skipped: tuple[Path, ...] = ()


def find_images(folder: Path, without: Path) -> Images:
    """Find the images of a folder and of the folders in it; hidden ones are left out.

    Args:
        folder: Where to look.
        without: A folder whose files do not count, such as that of drawn pictures.

    Raises:
        UserError: if there is none.
    """
    without = without.resolve()
    files, skipped = [], []
    for path in sorted(folder.rglob('*')):
        name = path.relative_to(folder)
        hidden = any(part.startswith('.') for part in name.parts)
        if hidden or not path.is_file() or path.resolve().is_relative_to(without):
            continue
        (files if path.suffix.lower() in _FORMATS else skipped).append(name)
    if not files:
        raise UserError(
            f'{folder} holds no images and {len(skipped)} other files: expected files that end in '
            f'{", ".join(_FORMATS)}'
        )
    return Images(folder, tuple(files), tuple(skipped))


def read_image(file: Path) -> np.ndarray:
    """Read an image with the pixels that the hosts' own loading gives a model.

    Upright as its EXIF entry says, grey repeated in three channels, alpha left out. 16 bits are
    scaled to 8. Pillow reads it, and not OpenCV, because it refuses a file that is cut off.

    Returns:
        (H, W, 3) uint8, BGR.

    Raises:
        UserError: if it is none, or damaged, or its pixels are no numbers of 8 or 16 bits. The
            message begins with the file.
    """
    try:
        with Image.open(file, formats=sorted(set(_FORMATS.values()))) as stored:
            image = ImageOps.exif_transpose(stored)
        if image.mode.startswith(('I', 'F')):
            image = Image.fromarray(_to_8_bits(np.asarray(image)))
        return np.asarray(image.convert('RGB'))[..., ::-1].copy()
    except UnidentifiedImageError as error:
        reason = 'is no image, or damaged' if file.stat().st_size else 'is empty'
        raise UserError(f'{file} {reason}') from error
    except Exception as error:  # a damaged file can make the reader raise anything
        raise UserError(f'{file} cannot be read: {why_unreadable(error)}') from error


def drawn_name(name: Path) -> Path:
    """The name of the picture that is drawn for an image: its own where we can write such files."""
    return name if name.suffix.lower() in _FORMATS else name.with_name(f'{name.name}.png')


def encode_image(image: np.ndarray, suffix: str) -> bytes:
    """Encode an image for a file with a suffix.

    Args:
        image: (H, W, 3) uint8, BGR.
        suffix: Such as '.jpg'.

    Raises:
        ValueError, OSError: The format has no room for so large an image.
    """
    buffer = io.BytesIO()
    Image.fromarray(image[..., ::-1].copy()).save(
        buffer, _FORMATS[suffix.lower()], quality=_QUALITY
    )
    return buffer.getvalue()


def _to_8_bits(pixels: np.ndarray) -> np.ndarray:
    """Scale 16 bits to 8: white, 65535, is 257 times 255. Pillow's own conversion cuts off."""
    if pixels.dtype.kind == 'f' or pixels.min() < 0 or pixels.max() > 65535:
        raise ValueError(f'it has pixels of {pixels.dtype}: expected 8 or 16 bits')
    return ((pixels.astype(np.uint32) + 128) // 257).astype(np.uint8)
