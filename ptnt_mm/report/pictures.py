"""Images made small, for a page that carries them itself."""

import base64
import io
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from ptnt_mm.data.class_masks import IGNORED
from ptnt_mm.utils.decoding import read_rgb

_SIDE = 480
"""The longer side of a picture, in pixels: enough for a column of the page."""

_QUALITY = 80


@dataclass(frozen=True)
class Worst:
    """An image, and how bad its result is."""

    file: Path
    name: str  # what the page calls it
    cost: float  # the higher, the worse
    key: Hashable  # what the report of its run knows it by


def photograph(file: Path) -> dict[str, object]:
    """An image as a data address, ``picture``, with ``width`` and ``height`` in pixels."""
    image = Image.fromarray(read_rgb(file))
    width, height = image.size
    image.thumbnail((_SIDE, _SIDE))
    return dict(width=width, height=height, picture=_address(image, 'JPEG', quality=_QUALITY))


def class_map(labels: np.ndarray, palette: Sequence[Sequence[int]]) -> str:
    """Class indices (H, W) in colours, RGB, as a data address; others become transparent."""
    known = np.where(labels < len(palette), labels, IGNORED).astype(np.uint8)
    image = Image.fromarray(known)
    image.putpalette([channel for colour in palette for channel in colour])
    # Nearest: there is no class between two others.
    image.thumbnail((_SIDE, _SIDE), Image.Resampling.NEAREST)
    return _address(image, 'PNG', optimize=True, transparency=IGNORED)


def _address(image: Image.Image, kind: str, **options: object) -> str:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return f'data:image/{kind.lower()};base64,{base64.b64encode(stream.getvalue()).decode()}'
