"""Folders of masks: PNGs of class indices with a colour for each, and the names in a file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.utils.colours import PALETTE
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import some

IGNORED = 255
"""The index of pixels that do not count: what mmseg leaves out of loss and evaluation."""

NAMES = 'mask_classes.txt'
"""A class name on each line, in the order of the indices."""

_WHITE = (255, 255, 255)


def save_mask(pixels: np.ndarray, count: int, file: Path) -> None:
    """Write the index of each pixel, (H, W) uint8.

    Args:
        pixels: Below `count`, or IGNORED.
        count: The number of classes.
        file: A PNG; made with its parents.
    """
    mask = Image.fromarray(pixels, mode='P')
    mask.putpalette(_palette(count))
    file.parent.mkdir(parents=True, exist_ok=True)
    mask.save(file, optimize=True)


def write_names(folder: Path, names: Sequence[str]) -> None:
    """Write the class names beside the masks of a folder."""
    (folder / NAMES).write_text(''.join(f'{name}\n' for name in names), encoding='utf-8')


def check_replaceable(folder: Path) -> None:
    """Find out whether a folder holds nothing but masks that were written here.

    Raises:
        UserError: if something else would be lost with it; names it.
    """
    names = _read_names(folder)
    palette = _palette(len(names)) if names else None
    files = [path for path in folder.rglob('*') if not path.is_dir() and path != folder / NAMES]
    other = sorted(str(path) for path in files if not _is_mask(path, palette))
    if other or not folder.is_dir():
        found = some(other) or 'it is a file'
        raise UserError(
            f'{folder} holds other files than masks drawn by this tool, and is not replaced: '
            f'{found}. Choose another name, or remove it yourself'
        )


def check_neighbours(folder: Path, names: Sequence[str]) -> None:
    """Compare class names with those of the masks in the folders beside one.

    Raises:
        UserError: if the same index would mean another class there.
    """
    # Hidden ones are half written.
    neighbours = sorted(folder.parent.glob('[!.]*')) if folder.parent.is_dir() else []
    for neighbour in neighbours:
        others = _read_names(neighbour)
        if neighbour != folder and others and others != list(names):
            raise UserError(
                f'{neighbour} has masks of {_listed(others)}, and {folder} would have '
                f'{_listed(names)}: an index would mean another class in each. Draw both with the '
                'same --classes, which are the order of the categories; or masks of other data '
                'below another folder'
            )


def _read_names(folder: Path) -> list[str]:
    """The class names of a folder of masks; none if it is another folder."""
    try:
        return (folder / NAMES).read_text(encoding='utf-8').splitlines()
    except (OSError, ValueError):
        return []


def _is_mask(file: Path, palette: list[int] | None) -> bool:
    """Whether a file is a mask with this palette; its pixels are not decoded."""
    try:
        with Image.open(file, formats=['PNG']) as image:
            return image.mode == 'P' and image.getpalette() == palette
    except Exception:  # decoders may raise anything
        return False


def _listed(names: Sequence[str]) -> str:
    return ', '.join(f'{i} {name}' for i, name in enumerate(names))


def _palette(count: int) -> list[int]:
    """Colours of the indices, as Pillow takes them: black, ours again and again, white at last."""
    colours = [(0, 0, 0), *(PALETTE[i % len(PALETTE)] for i in range(count - 1))]
    colours += [_WHITE] * (IGNORED + 1 - count)
    return [channel for colour in colours for channel in colour]
