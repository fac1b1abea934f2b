"""Decode image files with Pillow, which refuses truncated files; OpenCV does not."""

import math
import threading
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.numbers import is_pair
from ptnt_mm.utils.text import counted

FORMATS = {
    '.bmp': 'BMP',
    '.gif': 'GIF',
    '.jfif': 'JPEG',
    '.jpe': 'JPEG',
    '.jpeg': 'JPEG',
    '.jpg': 'JPEG',
    '.pgm': 'PPM',
    '.png': 'PNG',
    '.ppm': 'PPM',
    '.tif': 'TIFF',
    '.tiff': 'TIFF',
    '.webp': 'WEBP',
}
"""Pillow's names of the formats that are read, by suffix: those that OpenCV decodes, too."""

DECODERS = sorted(set(FORMATS.values()))
"""For ``Image.open(..., formats=DECODERS)``: otherwise Pillow starts Ghostscript for an EPS."""

_CONVERTED_BY = {
    '.avif .heic .heif .hif': 'save them as JPEG, with pillow-heif for instance',
    '.eps .exr .hdr .ico .j2k .jp2 .jpx .jxl .pcx .psd .svg .tga': 'save them as PNG',
    '.arw .cr2 .cr3 .dng .nef .orf .raf .rw2': 'develop them, with rawpy for instance',
    '.dcm .dicom': 'save the slices of DICOM as PNG, with pydicom for instance',
    '.mha .mhd .nii .nii.gz .nrrd': 'save slices of volumes as PNG, with SimpleITK for instance',
    '.czi .lif .mrxs .nd2 .ndpi .scn .svs': 'save tiles of slides as PNG, with bioio for instance',
}
_UNREAD = {suffix: how for suffixes, how in _CONVERTED_BY.items() for suffix in suffixes.split()}
"""How to convert pictures that are not read, by suffix."""

Range = tuple[float, float]
"""The values of a file that become black and white."""

NOT_AN_IMAGE = 'not an image'
"""The reason for a file whose format is unknown."""

_LARGE = 2**25  # pixels
_one_large = threading.RLock()

_BITS_PER_SAMPLE, _PLANES = 258, 284  # TIFF's tags


@contextmanager
def large_images_expected() -> Iterator[None]:
    """Do not show Pillow's warning about images of more than 89 million pixels.

    It still refuses those of more than 179 million.
    """
    with warnings.catch_warnings(action='ignore', category=Image.DecompressionBombWarning):
        yield


def unread_pictures(files: Iterable[PurePath]) -> list[str]:
    """Count the pictures that are not read, a line for each suffix, with a way to convert them."""
    ends = (''.join(file.suffixes[-2:]).lower() for file in files)
    suffixes = (end if end in _UNREAD else f'.{end.rpartition(".")[2]}' for end in ends)
    counts = Counter(suffix for suffix in suffixes if suffix in _UNREAD)
    return [
        f'{counted(number, f"{suffix} picture")} left out: {_UNREAD[suffix]}'
        for suffix, number in sorted(counts.items())
    ]


def alone_if_large(size: tuple[int, int] | None) -> AbstractContextManager:
    """A context in which only one thread at a time decodes an image of more than 2**25 pixels.

    Args:
        size: Its sides in pixels; None if they are not known.
    """
    return _one_large if size is not None and size[0] * size[1] > _LARGE else nullcontext()


def read_rgb(file: Path | str, value_range: Range | None = None) -> np.ndarray:
    """Read an image with the same pixels as the hosts' loading.

    It is rotated by its EXIF data, grey is repeated in three channels, alpha is dropped (in a TIFF
    of 8 bits, colours are multiplied by it), and 16 bits are scaled to 8.

    Args:
        file: The image.
        value_range: The range of `LoadImageInRange`, which then reads files of more than 8 bits.

    Returns:
        (H, W, 3) uint8, RGB.

    Raises:
        UserError: if it is not an image, is damaged, or has pixels other than 8 or 16 bits without
            a range. The message begins with the file.
    """
    try:
        with Image.open(file, formats=DECODERS) as stored:
            if why := why_garbled(stored):
                raise ValueError(why)
            if value_range is None or bits_of(stored) <= 8:
                return _to_rgb(stored, _white(stored))
        return scaled(read_values(Path(file).read_bytes()), value_range)[..., ::-1].copy()
    except UnidentifiedImageError as error:
        raise UserError(f'{file} {why_not_an_image(Path(file))}') from error
    except Exception as error:  # a damaged file can make the reader raise anything
        raise UserError(f'{file} cannot be read: {why_unreadable(error)}') from error


def pillow_rgb(image: Image.Image, value_range: Range | None = None) -> np.ndarray:
    """The pixels of a Pillow image, (H, W, 3) uint8, RGB, as :func:`read_rgb` converts them.

    Raises:
        UserError: if it has pixels of more than 16 bits, or of floats, and there is no range.
    """
    try:
        if value_range is None or not image.mode.startswith(('I', 'F')):
            return _to_rgb(image)
        levels = scaled(np.asarray(_upright(image)), value_range)
    except ValueError as error:
        raise UserError(f'Pillow image of mode {image.mode}: {error}') from error
    return np.dstack([levels] * 3)


def _to_rgb(stored: Image.Image, white: int | None = None) -> np.ndarray:
    """The pixels of an image as it is opened, rotated by its EXIF data, (H, W, 3) uint8, RGB.

    ``white`` is that of :func:`_white`, to undo Pillow's stretching.
    """
    bits, image = bits_of(stored), _upright(stored)  # which forgets the format
    if white is not None:
        values = _unstretched(np.asarray(image), white)
        image = Image.fromarray(values if white <= 255 else _to_8_bits(values))
    elif image.mode.startswith(('I', 'F')):
        image = Image.fromarray(_to_8_bits(np.asarray(image)))
    if image.mode == 'CMYK' and stored.format == 'JPEG':
        return _from_cmyk(np.asarray(image))
    if image.mode == 'RGBA' and stored.format == 'TIFF' and bits <= 8:
        return _times_alpha(np.asarray(image))
    return np.asarray(image.convert('RGB'))


def _upright(image: Image.Image) -> Image.Image:
    """An image rotated by its EXIF data; damaged data is ignored, as OpenCV does."""
    with suppress(Exception):  # Pillow raises errors of any kind
        return ImageOps.exif_transpose(image)
    return image


def read_values(content: bytes) -> np.ndarray:
    """Decode an image file without scaling its values.

    It is rotated by its EXIF data, grey is repeated in three channels, and further channels are
    dropped. Grey images are read without OpenCV too.

    Returns:
        (H, W, 3), BGR, of the file's type, such as uint16 or float32. An image of 8 bits has the
        pixels of the hosts' loading.

    Raises:
        ValueError: if it cannot be decoded.
    """
    try:
        import cv2
    except ImportError:
        values = _grey_values(content)
    else:
        packed = np.frombuffer(content, np.uint8)
        # Not IMREAD_COLOR, which refuses grey floats and grey integers of 32 bits.
        values = cv2.imdecode(packed, cv2.IMREAD_ANYDEPTH | cv2.IMREAD_ANYCOLOR)
    if values is None:
        raise ValueError('OpenCV cannot decode it')
    return np.dstack([values] * 3) if values.ndim == 2 else values[..., :3]


def require_range(value_range: object) -> Range:
    """Return a range if it is two finite numbers, the lower one first; else raise a UserError."""
    low, high = value_range if is_pair(value_range) else (0, 0)
    if not -math.inf < low < high < math.inf:
        raise UserError(
            f'value_range={value_range!r}: expected two finite numbers, the lower one first, such '
            'as (0, 4095) for 12 bits'
        )
    return low, high


def scaled(values: np.ndarray, value_range: Range) -> np.ndarray:
    """Scale values of more than 8 bits to uint8; uint8 is returned unchanged.

    The range is divided into 256 equal steps: 0 to 4095 drops the lowest 4 bits, as the hosts drop
    8 of 16. Values outside become black or white; not-a-number becomes black.
    """
    if values.dtype == np.uint8:
        return values
    low, high = value_range
    step = (high - low + (values.dtype.kind != 'f')) / 256
    # float32 holds every integer of 16 bits.
    exact = np.float32 if values.dtype.itemsize <= 2 else np.float64
    levels = np.floor((values.astype(exact) - low) / step)
    return np.nan_to_num(levels.clip(0, 255), nan=0).astype(np.uint8)


def bits_of(image: Image.Image) -> int:
    """Bits of a stored value; Pillow's mode shows them only for grey images."""
    if image.format == 'TIFF':
        return max(image.tag_v2.get(_BITS_PER_SAMPLE, (1,)))
    if image.mode.startswith(('I', 'F')):
        return 16
    # PNG's raw mode, such as 'RGB;16B'.
    _, arguments = _decoder(image)
    is_deep = any(';16' in value for value in arguments if isinstance(value, str))
    return 16 if is_deep or (_white(image) or 0) > 255 else 8


def _white(image: Image.Image) -> int | None:
    """The value of white in a PGM or PPM if Pillow stretches it to 255 or 65535, and OpenCV not.

    OpenCV stretches only those that are written as text, and only to 255.
    """
    name, arguments = _decoder(image)
    if name not in ('ppm', 'ppm_plain') or not isinstance(arguments[-1], int):
        return None
    return None if name == 'ppm_plain' and arguments[-1] <= 255 else arguments[-1]


def _decoder(image: Image.Image) -> tuple[str, tuple]:
    """Pillow's decoder of an image that was not decoded yet, and its arguments."""
    if not getattr(image, 'tile', None):
        return '', ()
    name, _, _, arguments = image.tile[0]
    return name, arguments if isinstance(arguments, tuple) else (arguments,)


def _unstretched(levels: np.ndarray, white: int) -> np.ndarray:
    """The values in a PGM or PPM, from Pillow's uint8 or int32: (H, W) or (H, W, 3)."""
    values = np.round(levels * (white / (255 if levels.dtype == np.uint8 else 65535)))
    return values.astype(np.uint8 if white <= 255 else np.uint16)


def why_garbled(image: Image.Image) -> str:
    """Why OpenCV and Pillow decode an intact file to wrong pixels; empty if they do not."""
    if image.format == 'TIFF' and image.tag_v2.get(_PLANES) == 2 and bits_of(image) > 8:
        return 'TIFF with a plane for each colour and more than 8 bits: save it interleaved'
    return ''


def require_pixels(image: Any, order: str, other: str = '') -> np.ndarray:
    """Return an image if it is an array (H, W, 3) uint8 with pixels.

    Args:
        image: Anything.
        order: The order of its channels for the message, 'RGB' or 'BGR'.
        other: What else is accepted, for the message.

    Raises:
        UserError: if it is not. The message names its type and shape.
    """
    is_array = isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.ndim == 3
    if is_array and image.shape[2] == 3 and image.size:
        return image
    got = type_and_shape(image)
    raise UserError(f'expected {other}an array (H, W, 3) uint8, {order}, got {got}{_how(image)}')


def type_and_shape(value: Any) -> str:
    """The type of anything; of an array also its dtype and shape: 'float32 (60, 90, 3)'."""
    shape, kind = getattr(value, 'shape', None), getattr(value, 'dtype', None)
    if isinstance(value, np.ndarray):
        return f'{kind} {shape}'
    name = type(value).__name__
    return name if shape is None else f'{name} of {kind} {tuple(shape)}'


def why_unreadable(err: Exception) -> str:
    """Why a file cannot be read; Pillow repeats the path, and may show an object's address."""
    if isinstance(err, OSError) and err.strerror:
        return err.strerror
    return NOT_AN_IMAGE if 'cannot identify' in str(err) else str(err) or type(err).__name__


def _how(image: Any) -> str:
    """How to convert a common kind of array."""
    if not isinstance(image, np.ndarray) or not image.size:
        return ''
    if image.ndim == 2:
        return ': repeat a grey image with np.dstack([image] * 3)'
    if image.ndim == 3 and image.shape[2] == 4:
        return ': drop the fourth channel with image[..., :3]'
    if image.ndim == 3 and image.shape[2] == 3 and image.dtype.kind == 'f':
        if image.min() >= 0 and image.max() <= 1:
            return ' from 0 to 1: convert it with (image * 255).round().astype(np.uint8)'
        return ': convert it with image.round().astype(np.uint8) if it is from 0 to 255'
    return ''


def why_not_an_image(file: Path) -> str:
    """What Pillow does not recognise as an image, as the end of a sentence."""
    content = file.read_bytes()
    if not content:
        return 'is empty'
    if content[:4] in (b'II*\0', b'MM\0*', b'II+\0', b'MM\0+'):
        what = 'is a TIFF of an unsupported kind, or damaged'
        return f'{what}: save it with 8 or 16 bits and up to four channels'
    return 'is not an image, or damaged'


def _grey_values(content: bytes) -> np.ndarray:
    """Decode a grey image of more than 8 bits, (H, W); colours would lose bits in Pillow."""
    import io

    with Image.open(io.BytesIO(content), formats=DECODERS) as stored:
        white = _white(stored)
        image = ImageOps.exif_transpose(stored)
    if not image.mode.startswith(('I', 'F')):
        raise ValueError('colours of more than 8 bits need OpenCV: pip install opencv-python')
    return np.asarray(image) if white is None else _unstretched(np.asarray(image), white)


def _from_cmyk(inks: np.ndarray) -> np.ndarray:
    """Inks (H, W, 4) uint8 -> (H, W, 3) uint8, RGB, rounded as OpenCV does for JPEG."""
    white = 255 - inks[..., 3:].astype(np.int32)
    return (white - (inks[..., :3] * white >> 8)).astype(np.uint8)


def _times_alpha(pixels: np.ndarray) -> np.ndarray:
    """RGBA -> RGB, (H, W, 3) uint8, as libtiff does for OpenCV."""
    return ((pixels[..., :3].astype(np.uint32) * pixels[..., 3:] + 127) // 255).astype(np.uint8)


def _to_8_bits(pixels: np.ndarray) -> np.ndarray:
    """Scale 16 bits to 8: white, 65535, is 257 times 255. Pillow's conversion clips instead."""
    if pixels.dtype.kind == 'f' or pixels.min() < 0 or pixels.max() > 65535:
        raise ValueError(f'it has pixels of {pixels.dtype}: expected 8 or 16 bits')
    return ((pixels.astype(np.uint32) + 128) // 257).astype(np.uint8)
