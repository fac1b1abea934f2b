"""Figures of a benchmark: speed against memory, and time against image size."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmark.report import Row
from benchmark.timing import TRAINING
from ptnt_mm.utils.colours import PALETTE
from ptnt_mm.workbench.pages.figures import FAINT, INK, colour, save_figure

_MARKERS = 'os^D'
"""Marker shapes; the next one is used each time the colours repeat."""


def draw_speed_and_memory(rows: list[Row], machine: dict[str, Any], out_file: Path) -> None:
    """Draw one point per contender: seconds of a training step against its peak memory.

    Of several settings, such as batch sizes, the last is drawn.

    Raises:
        UserError: if the figure cannot be written.
    """
    rows = [row for row in rows if row.setting.mode == TRAINING and row.peak_bytes]
    rows = [row for row in rows if row.setting == rows[-1].setting]
    axes = _axes('seconds of a training step', 'GiB above the loaded model', machine)
    for index, row in enumerate(rows):
        marker = _MARKERS[index // len(PALETTE) % len(_MARKERS)]
        point = row.median_seconds, row.peak_bytes / 2**30
        axes.plot(*point, marker, color=colour(index), markersize=9, label=row.name)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    if rows:
        axes.set_title(str(rows[0].setting), color=INK, fontsize=10)
        axes.legend(frameon=False)  # because names next to points would overlap
    save_figure(axes.figure, out_file)


def draw_sizes(rows: list[Row], machine: dict[str, Any], out_file: Path) -> None:
    """Draw seconds of a forward pass over the side of a square image, one line per contender.

    Raises:
        UserError: if the figure cannot be written.
    """
    axes = _axes('side of a square image in pixels', 'seconds of a forward pass', machine)
    for index, name in enumerate(dict.fromkeys(row.name for row in rows)):
        points = [(row.setting.size[0], row.median_seconds) for row in rows if row.name == name]
        axes.plot(*zip(*points, strict=True), 'o-', color=colour(index), label=name)
    sides = sorted({row.setting.size[0] for row in rows})
    axes.set_xscale('log', base=2)
    axes.set_yscale('log')
    axes.set_xticks(sides, list(map(str, sides)))
    axes.legend(frameon=False)
    save_figure(axes.figure, out_file)


def _axes(x: str, y: str, machine: dict[str, Any]) -> Axes:
    axes = Figure(figsize=(7, 4.5), layout='constrained').subplots()
    axes.set_xlabel(f'{x}\n{machine["device"]}, torch {machine["torch"]}', color=INK)
    axes.set_ylabel(y, color=INK)
    axes.grid(color=FAINT, alpha=0.25)
    axes.spines[['top', 'right']].set_visible(False)
    return axes
