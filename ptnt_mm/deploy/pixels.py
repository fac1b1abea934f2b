"""Resize images for a network, and masks to the image, with only NumPy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ptnt_mm.deploy.decoding import Range, pillow_rgb, read_rgb, require_pixels
from ptnt_mm.deploy.export_info import MOST_PIXELS
from ptnt_mm.deploy.resizing import LINEAR, Resizing
from ptnt_mm.utils.errors import UserError


def to_rgb(image: Any, value_range: Range | None = None) -> np.ndarray:
    """Convert a path, a Pillow image or an array to (H, W, 3) uint8, RGB, or raise a UserError.

    ``value_range`` is for files and Pillow images of more than 8 bits, see :func:`read_rgb`.
    """
    if isinstance(image, (str, Path)):
        return read_rgb(image, value_range)
    if isinstance(image, Image.Image):
        return pillow_rgb(image, value_range)
    return require_pixels(image, 'RGB', 'a path, a Pillow image or ')


def prepared(
    image: np.ndarray, resizing: Resizing, canvas: Sequence[int] | None
) -> tuple[dict[str, np.ndarray], tuple[int, int]]:
    """Prepare an image for a network; return its inputs, and the height and width in them.

    Args:
        image: (H, W, 3) uint8, RGB.
        resizing: How its size changes.
        canvas: Height and width of a file with a fixed size, padded with zeros; None for any.

    Raises:
        UserError: if the image would be resized to more than ``MOST_PIXELS``, or in a way that
            needs OpenCV, which is not installed.
    """
    # A file of a fixed size has that of the crop.
    size = resizing.size_of(image.shape[:2], None if resizing.crop else canvas)
    if size != image.shape[:2] and size[0] * size[1] > MOST_PIXELS:
        raise UserError(
            f'an image of {image.shape[0]}x{image.shape[1]} pixels would be resized to '
            f'{size[0]}x{size[1]}: at most {MOST_PIXELS} pixels are possible'
        )
    pixels = resize(image, size, resizing.interpolation)
    if resizing.crop is not None:
        pixels = centre(pixels, resizing.crop)
        size = pixels.shape[:2]
    if canvas is not None:
        pixels = np.pad(pixels, [(0, canvas[0] - size[0]), (0, canvas[1] - size[1]), (0, 0)])
    sizes = np.array([size], dtype=np.int64)
    return dict(images=np.ascontiguousarray(pixels)[None], sizes=sizes), size


def centre(image: np.ndarray, crop: Sequence[int]) -> np.ndarray:
    """The centre of an image, as mmcv's ``CenterCrop``: (H, W, 3) -> (h, w, 3)."""
    height, width = map(min, crop, image.shape)
    top, left = round((image.shape[0] - height) / 2), round((image.shape[1] - width) / 2)
    return image[top : top + height, left : left + width]


def resize(image: np.ndarray, size: tuple[int, int], interpolation: str = LINEAR) -> np.ndarray:
    """Resize as the hosts: (H, W, 3) uint8 -> (h, w, 3) uint8.

    Without OpenCV, bilinear resizing may differ from it by 1.

    Raises:
        UserError: if another interpolation needs OpenCV.
    """
    if image.shape[:2] == size:
        return image
    backend, _, name = interpolation.partition(' ')
    if backend == 'pillow':
        return np.array(Image.fromarray(image).resize(size[::-1], Image.Resampling[name.upper()]))
    try:
        import cv2
    except ImportError as error:
        if interpolation != LINEAR:
            advice = 'pip install opencv-python-headless'
            raise UserError(f'{name} resizing needs OpenCV: {advice}') from error
        rows, columns = map(_centres, size, image.shape)
        image = _lerp(_lerp(image.astype(np.float32), rows).swapaxes(0, 1), columns)
        return np.rint(image).astype(np.uint8).swapaxes(0, 1)
    names = dict(bilinear='LINEAR', bicubic='CUBIC', lanczos='LANCZOS4')
    flag = getattr(cv2, f'INTER_{names.get(name, name.upper())}')
    return cv2.resize(image, size[::-1], interpolation=flag)


def full_mask(
    mask: np.ndarray,
    box: np.ndarray,
    size: tuple[int, int],
    threshold: float,
    grid: Sequence[float] | None,
    factors: Sequence[float] = (1, 1),
) -> np.ndarray:
    """A mask inside its box, or of the network's input if there is a ``grid`` -> (H, W) bool.

    See :func:`paste` and :func:`enlarge`.
    """
    if grid is None:
        return paste(mask, box, size, threshold)
    return enlarge(mask, grid, factors, size) > threshold


def paste(mask: np.ndarray, box: np.ndarray, size: tuple[int, int], threshold: float) -> np.ndarray:
    """A mask inside its box, (h, w) from 0 to 1 -> a mask of the image, (H, W) bool."""
    full = np.zeros(size, dtype=bool)
    x1, y1, x2, y2 = box
    left, top = max(int(np.floor(x1)) - 1, 0), max(int(np.floor(y1)) - 1, 0)
    right, bottom = min(int(np.ceil(x2)) + 1, size[1]), min(int(np.ceil(y2)) + 1, size[0])
    if x2 > x1 and y2 > y1 and right > left and bottom > top:
        rows = _hats((np.arange(top, bottom) + 0.5 - y1) / (y2 - y1), mask.shape[0])
        columns = _hats((np.arange(left, right) + 0.5 - x1) / (x2 - x1), mask.shape[1])
        full[top:bottom, left:right] = rows @ mask @ columns.T >= threshold
    return full


def enlarge(
    mask: np.ndarray, grid: Sequence[float], factors: Sequence[float], size: tuple[int, int]
) -> np.ndarray:
    """A mask of a network's input, (h, w) -> its values at the pixels of the image, (H, W).

    Args:
        mask: Any values.
        grid: See ``ExportInfo.mask_grid``.
        factors: The image's height and width in those of the network's input.
        size: The image's height and width.
    """
    rows, columns = (
        ((np.arange(side) + 0.5) / factor - grid[1]) / grid[0]
        for side, factor in zip(size, factors, strict=True)
    )
    return _lerp(_lerp(mask, rows).swapaxes(0, 1), columns).swapaxes(0, 1)


def _centres(length: int, number: int) -> np.ndarray:
    """The centres of ``length`` pixels among those of ``number`` pixels on the same side."""
    return (np.arange(length) + 0.5) * number / length - 0.5


def _lerp(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Interpolate along the first axis, (n, ...) at (m,) indices -> (m, ...)."""
    last = len(values) - 1
    places = places.clip(0, last)
    low = places.astype(int)
    share = (places - low).astype(np.float32).reshape(-1, *[1] * (values.ndim - 1))
    return values[low] * (1 - share) + values[np.minimum(low + 1, last)] * share


def _hats(places: np.ndarray, number: int) -> np.ndarray:
    """Interpolation weights of places in [0, 1] in a row of pixels, zeros outside: (n, number)."""
    distances = places[:, None] * number - 0.5 - np.arange(number)
    return (1 - np.abs(distances)).clip(min=0).astype(np.float32)
