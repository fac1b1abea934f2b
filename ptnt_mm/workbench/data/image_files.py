"""Find, read and encode image files; read their size and orientation without decoding."""

import io
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from PIL import Image

from ptnt_mm.deploy.decoding import (
    DECODERS,
    FORMATS,
    Range,
    alone_if_large,
    read_rgb,
    unread_pictures,
    why_garbled,
    why_unreadable,
)
from ptnt_mm.utils.atomic_files import fitted_name
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.data.walk import walk

_ORIENTATION = 0x0112  # EXIF's tag
ON_THEIR_SIDE = (5, 6, 7, 8)  # its values; 2, 3 and 4 mirror an image or turn it by 180 degrees

DROP_ROTATION = (
    'take the rotation out of the EXIF data (exiftool -Orientation= FILE), so that the images are '
    'read as stored'
)
"""Advice about labels that were drawn on the pixels as stored."""

_QUALITY = 95  # of JPEG and WebP


@dataclass(frozen=True)
class Images:
    """Image files below a folder, and files of other kinds, relative to it."""

    root: Path
    files: tuple[Path, ...]
    skipped: tuple[Path, ...] = ()


def find_images(folder: Path, without: Path | None = None) -> Images:
    """Find the images of a folder and of the folders in it, or raise a UserError.

    Those that :func:`walk` leaves out are skipped, and those below ``without``.
    """
    if not folder.is_dir():
        what = 'is a file' if folder.exists() else 'does not exist'
        raise UserError(f'{folder} {what}: expected a folder of images')
    without = None if without is None else without.resolve()
    files, skipped, found = [], [], list(walk(folder))
    for path in sorted(where / name for where, names, _ in found for name in names):
        name = path.relative_to(folder)
        if not path.is_file():
            continue
        if without is not None and path.resolve().is_relative_to(without):
            continue
        (files if path.suffix.lower() in FORMATS else skipped).append(name)
    if not files and any(has_results for *_, has_results in found):
        raise UserError(f'{folder} contains only results of ptnt infer: expected images')
    if not files:
        converted = ''.join(f'\n{line}' for line in unread_pictures(skipped))
        others = f'images and {counted(len(skipped), "other file")}' if skipped else 'files'
        raise UserError(
            f'{folder} contains no {others}: expected images, files that end in '
            f'{", ".join(FORMATS)}{converted}'
        )
    return Images(folder, tuple(files), tuple(skipped))


def read_image(file: Path, value_range: Range | None = None) -> np.ndarray:
    """Read an image as :func:`read_rgb` does, but with OpenCV's order of colours.

    Returns:
        (H, W, 3) uint8, BGR.

    Raises:
        UserError: as :func:`read_rgb`.
    """
    return read_rgb(file, value_range)[..., ::-1].copy()


def drawn_name(name: Path) -> Path:
    """File name of the drawn picture: that of the image if its format can be written."""
    if name.suffix.lower() in FORMATS:
        return name
    return name.with_name(fitted_name(f'{name.name}.png'))


def encode_image(image: np.ndarray, suffix: str) -> bytes:
    """Encode an image, (H, W, 3) uint8, BGR, for a file with a suffix such as '.jpg'.

    Pillow raises a ValueError or OSError if the image is too large for the format.
    """
    buffer = io.BytesIO()
    Image.fromarray(image[..., ::-1].copy()).save(buffer, FORMATS[suffix.lower()], quality=_QUALITY)
    return buffer.getvalue()


def size_as_read(path: Path) -> tuple[int, int] | None:
    """(width, height) of an image in pixels as the hosts read it: rotated by its EXIF data.

    The pixels are not decoded. None if it is not an image.
    """
    try:
        with Image.open(path, formats=DECODERS) as image:
            return image.size[::-1] if orientation_of(image) in ON_THEIR_SIDE else image.size
    except Exception:  # decoders may raise anything
        return None


def is_on_its_side(path: Path) -> bool:
    """Whether EXIF data swaps the sides of an image; False if it is not an image."""
    with suppress(Exception), Image.open(path, formats=DECODERS) as image:  # of any kind
        return orientation_of(image) in ON_THEIR_SIDE
    return False


def decoded(
    file: Path | BinaryIO, use: Callable[[Image.Image], None] = lambda image: None
) -> tuple[str, tuple[int, int] | None, int]:
    """Decode an image with Pillow: why it fails; its (width, height) and orientation as stored.

    ``use`` is called with the pixels; a JPEG may be decoded at an eighth of its size.
    """
    stored, orientation = None, 1
    try:
        with Image.open(file, formats=DECODERS) as opened:
            stored = opened.size
            # For a JPEG, decoding at an eighth of its size detects truncation.
            opened.draft(None, (32, 32))
            with alone_if_large(opened.size):
                orientation = orientation_of(opened)  # decodes a PNG
                opened.load()
                use(opened)
                why = why_garbled(opened)
                opened.close()  # frees the pixels before another thread decodes
            return why, stored, orientation
    except Exception as err:  # decoders may raise anything
        return why_unreadable(err), stored, orientation


def orientation_of(image: Image.Image) -> int:
    """The EXIF orientation, 1 to 8; 1 is upright, as is an image with any other value or none."""
    value = image.getexif().get(_ORIENTATION)
    return value if value in range(1, 9) else 1
