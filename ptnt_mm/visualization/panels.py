"""Figures made of rows of panels: maps over an image, or points."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ptnt_mm.visualization.figures import FAINT, INK

Box = tuple[float, float, float, float]
"""Left, right, bottom and top in pixels of the image."""

_MOST_TILES, _MOST_PIXELS = 16, 1500
_TALLEST, _WIDEST = 2.6, 13.0  # of a row's panels, in inches


class Scale(NamedTuple):
    """What colours stand for; neighbours of the same scale share a colour bar."""

    label: str
    low: float
    high: float
    colours: str


def from_zero(label: str, *values: np.ndarray) -> Scale:
    """From 0 to the largest number."""
    return Scale(label, 0, max(float(array.max()) for array in values) or 1.0, 'inferno')


def around(middle: float, label: str, values: np.ndarray) -> Scale:
    """Blue below a number and red above; the farthest 0.5 % get the last colour."""
    far = max(float(np.percentile(np.abs(values - middle), 99.5)), middle / 10) or 1.0
    return Scale(label, middle - far, middle + far, 'RdBu_r')


class Panel(NamedTuple):
    """A map over an image."""

    title: str
    image: np.ndarray  # (H, W, 3) uint8, RGB; grey under a map
    values: np.ndarray | None = None  # (h, w) or, from 0 to 1, (h, w, 3)
    place: Box | None = None  # of the values
    scale: Scale | None = None  # of (h, w)
    opacity: float = 1.0
    frame: Box | None = None  # an outlined place
    view: Box | None = None  # what is shown; the whole image by default
    tiles: tuple[int, int] = (1, 1)  # rows and columns with lines between, if they are few
    labels: tuple[str, str] = ('x (pixels)', 'y (pixels)')

    def draw(self, axes: Axes) -> None:
        """Draw all but the colour bar."""
        height, width = self.image.shape[:2]
        grey = self.image.mean(axis=2, keepdims=True).repeat(3, axis=2) / 255
        under = self.image if self.values is None else grey
        axes.imshow(under, extent=(0, width, height, 0))
        if self.values is not None:
            _, low, high, colours = self.scale or Scale('', 0, 1, 'gray')
            style = dict(cmap=colours, vmin=low, vmax=high, alpha=self.opacity)
            # More than a figure has pixels would take gigabytes.
            thin = tuple(slice(None, None, 1 + n // _MOST_PIXELS) for n in self.values.shape[:2])
            axes.imshow(self.values[thin], extent=self.place, interpolation='nearest', **style)
        if 1 < max(self.tiles) <= _MOST_TILES:
            left, right, bottom, top = self.place
            for y in np.linspace(top, bottom, self.tiles[0] + 1):
                axes.axhline(y, color=INK, linewidth=0.8)
            for x in np.linspace(left, right, self.tiles[1] + 1):
                axes.axvline(x, color=INK, linewidth=0.8)
        if self.frame is not None:
            left, right, bottom, top = self.frame
            for colour, line in (('white', 3), ('black', 1.2)):
                box = Rectangle((left, top), right - left, bottom - top, ec=colour, lw=line)
                axes.add_patch(box).set_fill(False)
        left, right, bottom, top = self.view or (0, width, height, 0)
        axes.set(xlim=(left, right), ylim=(bottom, top))


class Points(NamedTuple):
    """Points in the plane."""

    title: str
    places: np.ndarray  # (n, 2)
    numbers: np.ndarray  # (n,), shown as colours
    scale: Scale
    labels: tuple[str, str] = ('t-SNE 1', 't-SNE 2')

    def draw(self, axes: Axes) -> None:
        """Draw all but the colour bar."""
        _, low, high, colours = self.scale
        axes.scatter(*self.places.T, 8, self.numbers, cmap=colours, vmin=low, vmax=high)
        axes.set_box_aspect(1)


class PanelRow(NamedTuple):
    """Panels side by side under a heading."""

    heading: str
    panels: Sequence[Panel | Points]


def draw_rows(title: str, rows: Sequence[PanelRow]) -> Figure:
    """Draw rows one under the other, of panels that are as wide as the first."""
    columns = max(len(row.panels) for row in rows)
    first = rows[0].panels[0]
    aspect = first.image.shape[1] / first.image.shape[0] if isinstance(first, Panel) else 1.0
    beside = 0.7 + 0.2 * columns + 0.75 * max(sum(_bars(row)) for row in rows)
    height = min(_TALLEST, (_WIDEST - beside) / columns / aspect)
    size = (max(7.0, columns * height * aspect + beside), len(rows) * (height + 0.95) + 0.5)
    figure = Figure(size, layout='constrained')
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
    figure.suptitle(title, x=0.01, ha='left', size=13, weight='bold', color=INK)
    for part, row in zip(figure.subfigures(len(rows), squeeze=False)[:, 0], rows, strict=True):
        part.suptitle(row.heading, x=0.01, ha='left', size=10, color=INK)
        grid = part.subplots(1, columns, squeeze=False)[0]
        for axes in grid[len(row.panels) :]:
            axes.set_axis_off()
        for axes, panel, bar in zip(grid, row.panels, _bars(row), strict=False):
            panel.draw(axes)
            axes.set_title(panel.title, size=8.5, color=INK)
            axes.set_xlabel(panel.labels[0], size=8)
            if axes is grid[0]:
                axes.set_ylabel(panel.labels[1], size=8)
            axes.locator_params(nbins=4, integer=True)
            axes.tick_params(labelsize=7, colors=FAINT)
            if bar:
                label, low, high, colours = panel.scale
                colours = ScalarMappable(Normalize(low, high), colours)
                bar = part.colorbar(colours, axes.inset_axes((1.04, 0, 0.05, 1)))
                bar.set_label(label, size=8)
                bar.ax.tick_params(labelsize=7, colors=FAINT)
    return figure


def _bars(row: PanelRow) -> list[bool]:
    """Whether a colour bar follows each panel: the next one has another scale."""
    scales = [*(panel.scale for panel in row.panels), None]
    return [scale not in (None, following) for scale, following in pairwise(scales)]
