"""HTML pages from templates, and their images and masks as text."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from PIL import Image

from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.workbench.data.class_masks import IGNORED

TEMPLATES = Environment(
    loader=PackageLoader(__package__),
    # Class and file names are untrusted text.
    autoescape=select_autoescape(),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def write_page(template: str, file: Path, **content: Any) -> None:
    """Write a page from a template in the folder ``templates``, or raise a UserError."""
    write_atomically(file, TEMPLATES.get_template(template).render(**content))


_SIDE = 480  # the longer side of a picture, in pixels: enough for a column of the page

_QUALITY = 80


def photograph(image: np.ndarray, side: int = _SIDE) -> dict[str, object]:
    """Reduce an image (H, W, 3) uint8, RGB, to at most ``side`` pixels.

    Returns:
        ``picture``, a data URL, and the original ``width`` and ``height`` in pixels.
    """
    picture = Image.fromarray(image)
    width, height = picture.size
    picture.thumbnail((side, side))
    return dict(width=width, height=height, picture=data_url(picture, 'JPEG', quality=_QUALITY))


def class_map(labels: np.ndarray, palette: Sequence[Sequence[int]]) -> str:
    """Colour class indices (H, W) with a palette, RGB, as a data URL; others are transparent."""
    known = np.where(labels < len(palette), labels, IGNORED).astype(np.uint8)
    image = Image.fromarray(known)
    # All 256 entries: Pillow stores pixels in as few bits as a shorter palette needs, in which the
    # value of ignored pixels would be that of a class.
    channels = [channel for colour in palette for channel in colour]
    image.putpalette(channels + [0] * (3 * (IGNORED + 1) - len(channels)))
    # Nearest, because there is no class between two others.
    image.thumbnail((_SIDE, _SIDE), Image.Resampling.NEAREST)
    return data_url(image, 'PNG', optimize=True, transparency=IGNORED)


def outline(mask: np.ndarray) -> str:
    """The outline of a mask (H, W) as an SVG path, in pixels of the mask."""
    contours, _ = cv2.findContours(
        mask.astype(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE
    )
    lines = (cv2.approxPolyDP(contour, 1, closed=True)[:, 0] for contour in contours)
    return ''.join('M' + 'L'.join(f'{x} {y}' for x, y in line) + 'Z' for line in lines)


def data_url(image: Image.Image, kind: str, **options: object) -> str:
    """Encode an image in a format of Pillow, as a data URL."""
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return f'data:image/{kind.lower()};base64,{base64.b64encode(stream.getvalue()).decode()}'
