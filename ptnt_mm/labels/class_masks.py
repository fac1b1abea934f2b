"""Masks of class indices: the labels of mmseg; written with colours and a file of class names."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.utils.colours import PALETTE

VALUES = 256  # mmseg reads masks as 8-bit numbers

IGNORED = 255
"""The index of ignored pixels, which mmseg excludes from loss and evaluation."""

NAMES = 'mask_classes.txt'  # a class name on each line, in the order of the indices


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
    """Write the class names next to the masks of a folder."""
    (folder / NAMES).write_text(''.join(f'{name}\n' for name in names), encoding='utf-8')


def _palette(count: int) -> list[int]:
    """A palette for Pillow: black, our colours repeated, and white at the end."""
    colours = [(0, 0, 0), *(PALETTE[i % len(PALETTE)] for i in range(count - 1))]
    unused = [(255, 255, 255) for _ in range(count, IGNORED + 1)]
    return [channel for colour in (*colours, *unused) for channel in colour]


def voc_colour(index: int) -> tuple[int, int, int]:
    """The colour of an index in the palette of Pascal VOC: (0, 0, 0), (128, 0, 0), ..."""
    # The bits of the index go to the channels in turn, the lowest first, as their highest ones.
    red, green, blue = (
        sum((index >> 3 * place + channel & 1) << 7 - place for place in range(3))
        for channel in range(3)
    )
    return red, green, blue
