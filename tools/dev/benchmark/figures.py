"""Figures of a benchmark: speed against memory, and time against image size."""

from collections import defaultdict
from pathlib import Path

from benchmark.report import Measurement, Report
from benchmark.timing import TRAINING
from ptnt_mm.utils.colours import PALETTE
from ptnt_mm.visualization.figures import FAINT, INK, check_out_file, colour, save

_MARKERS = 'os^D'
"""Marker shapes; the next one is used each time the colours repeat."""


def draw_speed_and_memory(report: Report, out_file: str | Path) -> Path:
    """Draw one point per contender: seconds of a training step against its peak memory.

    Raises:
        UserError: if the figure cannot be written.
    """
    from matplotlib.figure import Figure

    out_file = Path(out_file)
    check_out_file(out_file)
    rows = [row for row in report.rows if row.setting.mode == TRAINING and row.peak_bytes]
    figure = Figure(figsize=(7, 4.5), layout='constrained')
    axes = figure.subplots()
    for index, row in enumerate(rows):
        marker = _MARKERS[index // len(PALETTE) % len(_MARKERS)]
        point = row.times.median, row.peak_bytes / 2**30
        axes.plot(*point, marker, color=colour(index), markersize=9, label=row.name)
    # A legend, because names beside points would overlap.
    axes.legend(frameon=False)
    _label(axes, 'seconds of a training step', 'GiB above the loaded model', report)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    if rows:
        axes.set_title(str(rows[0].setting), color=INK, fontsize=10)
    return save(figure, out_file)


def draw_sizes(report: Report, out_file: str | Path) -> Path:
    """Draw seconds of a forward pass over the side of a square image, one line per contender.

    Raises:
        UserError: if the figure cannot be written.
    """
    from matplotlib.figure import Figure

    out_file = Path(out_file)
    check_out_file(out_file)
    lines: dict[str, list[Measurement]] = defaultdict(list)
    for row in report.rows:
        lines[row.name].append(row)
    figure = Figure(figsize=(7, 4.5), layout='constrained')
    axes = figure.subplots()
    for index, (name, rows) in enumerate(lines.items()):
        sides = [row.setting.size[0] for row in rows]
        axes.plot(sides, [row.times.median for row in rows], 'o-', color=colour(index), label=name)
    every = sorted({row.setting.size[0] for row in report.rows})
    axes.set_xscale('log', base=2)
    axes.set_yscale('log')
    axes.set_xticks(every, [str(side) for side in every])
    axes.legend(frameon=False)
    _label(axes, 'side of a square image in pixels', 'seconds of a forward pass', report)
    return save(figure, out_file)


def _label(axes, x: str, y: str, report: Report) -> None:
    axes.set_xlabel(f'{x}\n{report.machine["device"]}, torch {report.machine["torch"]}', color=INK)
    axes.set_ylabel(y, color=INK)
    axes.grid(color=FAINT, alpha=0.25)
    axes.spines[['top', 'right']].set_visible(False)
