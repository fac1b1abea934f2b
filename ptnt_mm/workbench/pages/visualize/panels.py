"""Panels of a page: maps over an image, and points in the plane."""

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from PIL import Image

from ptnt_mm.utils.colours import as_hex
from ptnt_mm.workbench.pages.page import data_url

Box = tuple[float, float, float, float]
"""Left, top, width and height in pixels of the image."""

_MOST_TILES, _MOST_PIXELS = 16, 800
_STOPS = 9  # stops of a colour bar


class Scale(NamedTuple):
    """The numbers at both ends of a colour bar, and the name of its colours in Matplotlib."""

    label: str
    low: float
    high: float
    colours: str

    @property
    def gradient(self) -> str:
        """The colours from low to high, as CSS."""
        colours = matplotlib.colormaps[self.colours](np.linspace(0, 1, _STOPS), bytes=True)
        return f'linear-gradient(to right, {", ".join(map(as_hex, colours[:, :3]))})'

    def paint(self, values: np.ndarray) -> Image.Image:
        """Colour an array (h, w) as an image of 256 colours."""
        share = (values - self.low) / (self.high - self.low)
        image = Image.fromarray((255 * np.nan_to_num(share).clip(0, 1)).round().astype(np.uint8))
        colours = matplotlib.colormaps[self.colours](np.arange(256), bytes=True)
        image.putpalette(colours[:, :3].tobytes())
        return image


def from_zero(label: str, *values: np.ndarray) -> Scale:
    """Return a scale from 0 to the largest number."""
    return Scale(label, 0, max(float(array.max()) for array in values) or 1.0, 'inferno')


def around(middle: float, label: str, values: np.ndarray) -> Scale:
    """Return a scale that is blue below a number, red above, and clips 0.5 % of the values."""
    far = max(float(np.percentile(np.abs(values - middle), 99.5)), middle / 10) or 1.0
    return Scale(label, middle - far, middle + far, 'RdBu_r')


class Panel(NamedTuple):
    """A map over the image in grey; without values, only the image."""

    title: str
    values: np.ndarray | None = None  # (h, w) or, from 0 to 1, (h, w, 3)
    place: Box | None = None  # the part of the image that the values cover
    scale: Scale | None = None  # for values (h, w)
    frame: Box | None = None  # an outlined place
    view: Box | None = None  # the part that is shown; the whole image by default
    tiles: tuple[int, int] = (1, 1)  # rows and columns

    def layer(self) -> str:
        """The values as a data URL, a pixel for each; thinned if there are very many."""
        thin = tuple(slice(None, None, 1 + n // _MOST_PIXELS) for n in self.values.shape[:2])
        values = self.values[thin]
        if self.scale is None:
            image = Image.fromarray((255 * values).round().astype(np.uint8))
        else:
            image = self.scale.paint(values)
        return data_url(image, 'PNG', optimize=True)

    def lines(self) -> str:
        """Lines between the tiles as an SVG path; none if there are too many to see."""
        if not 1 < max(self.tiles) <= _MOST_TILES:
            return ''
        left, top, width, height = self.place
        rows, columns = self.tiles
        ys = (top + height * i / rows for i in range(rows + 1))
        xs = (left + width * i / columns for i in range(columns + 1))
        across = ''.join(f'M{left:.2f} {y:.2f}h{width:.2f}' for y in ys)
        return across + ''.join(f'M{x:.2f} {top:.2f}v{height:.2f}' for x in xs)


class Points(NamedTuple):
    """Points in the plane, coloured by a number."""

    title: str
    positions: np.ndarray  # (n, 2)
    numbers: np.ndarray  # (n,)
    scale: Scale

    def circles(self) -> list[tuple[float, float, str]]:
        """Positions x and y in [0, 100], and a colour, for each point."""
        low = self.positions.min(axis=0)
        extent = np.maximum((self.positions - low).max(axis=0), 1e-9)
        places = (4 + 92 * (self.positions - low) / extent).round(1).tolist()
        colours = self.scale.paint(self.numbers[None]).convert('RGB')
        colours = map(as_hex, np.asarray(colours)[0])
        return [(x, y, colour) for (x, y), colour in zip(places, colours, strict=True)]


class PanelRow(NamedTuple):
    """Panels side by side under a heading."""

    heading: str
    panels: Sequence[Panel | Points]
