"""Photographs with three objects, and masks of them in the forms that programs write."""

from pathlib import Path

import numpy as np
from PIL import Image

SIZE = (80, 64)
COLOURS = np.array([(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0), (0, 0, 128)], np.uint8)
"""The first colours of Pascal VOC's palette."""


def indices(i: int, count: int = 2) -> np.ndarray:
    """The number of the object at each pixel of picture i, from 1, (H, W) uint8."""
    rng = np.random.default_rng(i)
    pixels = np.zeros(SIZE[::-1], np.uint8)
    for number, place in enumerate(rng.permutation(12)[:count], start=1):
        x, y = place % 4 * 20 + rng.integers(1, 5), place // 4 * 21 + rng.integers(1, 5)
        pixels[y : y + rng.integers(8, 15), x : x + rng.integers(8, 15)] = number
    return pixels


def photograph(i: int, count: int = 2) -> Image.Image:
    """A picture with noise, in which the objects are darker and lighter."""
    rng = np.random.default_rng(100 + i)
    ground = rng.integers(90, 120, (8, 10, 3), np.uint8)
    ground = np.asarray(Image.fromarray(ground).resize(SIZE, Image.Resampling.BICUBIC))
    tint = 70 * np.where(np.arange(count + 1) % 2, -1, 1) * (np.arange(count + 1) > 0)
    pixels = ground + tint[indices(i, count)][..., None] + rng.normal(0, 5, ground.shape)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def black_and_white(i: int) -> Image.Image:
    return Image.fromarray((indices(i) > 0).astype(np.uint8) * 255)


def with_palette(pixels: np.ndarray, colours: np.ndarray = COLOURS) -> Image.Image:
    image = Image.fromarray(pixels, mode='P')
    image.putpalette(colours.ravel().tolist())
    return image


def put(image: Image.Image, file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    image.save(file)
    return file
