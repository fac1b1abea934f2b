"""Figures made of rows of panels: maps over an image, matrices, scattered points."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from ptnt_mm.visualization.figures import FAINT, INK

Box = tuple[float, float, float, float]
"""Left, right, bottom and top, as Matplotlib's ``extent``."""

_TALLEST, _WIDEST = 2.6, 13.0  # of a row's panels, in inches


class Scale(NamedTuple):
    """What colours stand for; neighbours of the same scale share a colour bar."""

    label: str
    low: float
    high: float
    colours: str = 'inferno'

    def mappable(self) -> ScalarMappable:
        """As Matplotlib takes it."""
        return ScalarMappable(Normalize(self.low, self.high), self.colours)


def around_zero(label: str, values: np.ndarray) -> Scale:
    """Blue below 0 and red above; the farthest 0.5 % get the last colour."""
    far = float(np.percentile(np.abs(values), 99.5)) or 1.0
    return Scale(label, -far, far, 'RdBu_r')


def from_zero(label: str, *values: np.ndarray) -> Scale:
    """From 0 to the largest number."""
    return Scale(label, 0, max(float(array.max()) for array in values) or 1.0)


@dataclass(frozen=True)
class Panel:
    """Numbers (h, w) or colours (h, w, 3) from 0 to 1, over an image or alone."""

    title: str
    values: np.ndarray | None
    extent: Box | None = None  # of the values
    scale: Scale | None = None  # of numbers
    image: np.ndarray | None = None  # (H, W, 3) uint8, RGB; grey under values
    opacity: float = 1.0
    frame: Box | None = None  # an outlined place
    view: Box | None = None  # what is shown; by default the extent
    labels: tuple[str, str] = ('x (pixels)', 'y (pixels)')

    def draw(self, axes: Axes) -> None:
        """Draw all but the colour bar."""
        if self.image is not None:
            grey = self.image.mean(axis=2, keepdims=True).repeat(3, axis=2) / 255
            extent = (0, self.image.shape[1], self.image.shape[0], 0)
            axes.imshow(self.image if self.values is None else grey, extent=extent)
        if self.values is not None:
            scale = self.scale or Scale('', 0, 1)
            axes.imshow(
                self.values,
                scale.colours,
                extent=self.extent,
                vmin=scale.low,
                vmax=scale.high,
                alpha=self.opacity,
                interpolation='nearest' if self.image is not None else None,
            )
        if self.frame is not None:
            left, right, bottom, top = self.frame
            for colour, width in (('white', 3), ('black', 1.2)):
                axes.add_patch(
                    Rectangle(
                        (left, top), right - left, bottom - top, fc='none', ec=colour, lw=width
                    )
                )
        left, right, bottom, top = self.view or self.extent
        axes.set(xlim=(left, right), ylim=(bottom, top))
        axes.set_aspect('auto' if self.image is None else 'equal')


class Points(Panel):
    """Points (n, 3): x, y, and the number that their colour stands for."""

    def draw(self, axes: Axes) -> None:
        """Draw all but the colour bar."""
        *places, numbers = self.values.T
        scale = self.scale
        axes.scatter(*places, 8, numbers, cmap=scale.colours, vmin=scale.low, vmax=scale.high)


class Row(NamedTuple):
    """Panels side by side under a heading."""

    heading: str
    panels: Sequence[Panel]


def draw_rows(title: str, rows: Sequence[Row], aspect: float) -> Figure:
    """Draw rows one under the other.

    Args:
        title: Of the figure.
        rows: At least one.
        aspect: Width over height of most panels.
    """
    columns = max(len(row.panels) for row in rows)
    height = min(_TALLEST, _WIDEST / columns / aspect)
    size = (max(7.0, columns * (height * aspect + 0.3) + 1.2), len(rows) * (height + 0.95) + 0.4)
    figure = Figure(size, layout='constrained')
    figure.suptitle(title, x=0.01, ha='left', size=13, weight='bold', color=INK)
    for part, row in zip(figure.subfigures(len(rows), squeeze=False)[:, 0], rows, strict=True):
        part.suptitle(row.heading, x=0.01, ha='left', size=10, color=INK)
        grid = part.subplots(1, columns, squeeze=False)[0]
        for axes in grid[len(row.panels) :]:
            axes.set_axis_off()
        for i, (axes, panel) in enumerate(zip(grid, row.panels, strict=False)):
            panel.draw(axes)
            axes.set_title(panel.title, size=8.5, color=INK)
            axes.set_xlabel(panel.labels[0], size=8)
            if i == 0 or panel.labels != row.panels[i - 1].labels:
                axes.set_ylabel(panel.labels[1], size=8)
            axes.locator_params(nbins=4)
            axes.tick_params(labelsize=7, colors=FAINT)
            following = row.panels[i + 1].scale if i + 1 < len(row.panels) else None
            if panel.scale not in (None, following):
                beside = axes.inset_axes((1.04, 0, 0.05, 1))
                bar = part.colorbar(panel.scale.mappable(), beside)
                bar.set_label(panel.scale.label, size=8)
                bar.ax.tick_params(labelsize=7, colors=FAINT)
    return figure
