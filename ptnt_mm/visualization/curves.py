"""Draw training curves from the scalars that MMEngine logs: losses and evaluation metrics."""

import math
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ptnt_mm.utils.scalar_logs import TrainingLog, metrics_of, read_training_log
from ptnt_mm.visualization.figures import FAINT, INK, check_out_file, colour, save


def draw_curves(work_dir: str | Path, out_file: str | Path) -> Path:
    """Draw the losses over iterations and, beside them, the evaluation metrics.

    Args:
        work_dir: A run's folder, with `<timestamp>/vis_data/scalars.json` for the training and
            for each resume. Where they overlap, the later one counts.
        out_file: The figure, .png or another format that Matplotlib writes.

    Returns:
        The path of the figure.

    Raises:
        UserError: if there is no log, if it is empty or not written by MMEngine, or if the figure
            cannot be written.
    """
    out_file = Path(out_file)
    check_out_file(out_file)
    log = read_training_log(Path(work_dir))
    figure = Figure(figsize=(12, 4.2), layout='constrained')
    losses, metrics = figure.subplots(1, 2)
    _draw_losses(losses, log)
    _draw_metrics(metrics, log)
    return save(figure, out_file)


def _draw_losses(axes: Axes, log: TrainingLog) -> None:
    names = [name for name in log.train[-1] if 'loss' in name and name != 'loss']
    styles = {name: dict(color=colour(index), linewidth=1.4) for index, name in enumerate(names)}
    styles['loss'] = dict(color=INK, linewidth=2.0)
    for name, style in styles.items():
        points = [(line['step'], line[name]) for line in log.train if name in line]
        points = [point for point in points if math.isfinite(point[1])]
        label = 'sum of all' if name == 'loss' else name
        axes.plot(*_columns(points), label=label, **_with_marker(style, points))
    for number, step in enumerate(log.resumed_at):
        label = 'resumed' if number == 0 else None
        axes.axvline(step, color=FAINT, linewidth=1, linestyle=':', label=label)
    _finish(axes, 'Training losses', 'iteration')


def _draw_metrics(axes: Axes, log: TrainingLog) -> None:
    if not log.val:
        axes.text(
            *(0.5, 0.5, 'no evaluation yet'),
            color=FAINT,
            horizontalalignment='center',
            transform=axes.transAxes,
        )
    names = list(dict.fromkeys(name for line in log.val for name in metrics_of(line)))
    # The main metric comes first. mmdet already logs it first; mmseg logs mIoU second.
    names.sort(key=lambda name: name != 'mIoU')
    for index, name in enumerate(names):
        points = [(line['step'], line[name]) for line in log.val if name in metrics_of(line)]
        style: dict[str, Any] = dict(color=colour(index - 1), linewidth=1.4)
        if index == 0:
            style = dict(color=INK, linewidth=2.4)
        label = f'{name.rpartition("/")[2]}  {points[-1][1]:.3f}'
        axes.plot(*_columns(points), label=label, **_with_marker(style, points))
    _finish(axes, 'Evaluation on the val split', 'epoch' if log.counts_epochs else 'iteration')


def _columns(points: list[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [step for step, _ in points], [value for _, value in points]


def _with_marker(style: dict[str, Any], points: list[tuple[int, float]]) -> dict[str, Any]:
    """Mark the points if there are few: a line of one point would be invisible."""
    return {**style, 'marker': 'o', 'markersize': 4} if len(points) <= 25 else style


def _finish(axes: Axes, title: str, x_label: str) -> None:
    axes.set_title(title, loc='left', fontsize=12, weight='bold', color=INK)
    axes.set_xlabel(x_label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.25)
    axes.spines[['top', 'right']].set_visible(False)
    if axes.get_legend_handles_labels()[0]:
        # Outside the axes, so that it covers no line.
        axes.legend(frameon=False, fontsize=9, loc='upper left', bbox_to_anchor=(1, 1))
