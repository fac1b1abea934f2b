"""Draw training curves from the scalars that MMEngine logs: losses and evaluation metrics."""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ptnt_mm.workbench.engine.scalar_logs import (
    TrainingLog,
    main_metric_first,
    metrics_of,
    read_training_log,
)
from ptnt_mm.workbench.pages.figures import FAINT, INK, colour, save_figure


def draw_curves(work_dir: Path, out_file: Path) -> Path:
    """Draw the losses over iterations and, next to them, the evaluation metrics.

    Args:
        work_dir: A run's folder, with `<timestamp>/vis_data/scalars.json` for the training and
            for each resume. Where they overlap, the later one counts.
        out_file: The figure, a PNG; it is returned.

    Raises:
        UserError: if there is no log, if it is empty or not written by MMEngine, or if the figure
            cannot be written.
    """
    log = read_training_log(work_dir)
    figure = Figure(figsize=(12, 4.2), layout='constrained')
    losses, metrics = figure.subplots(1, 2)
    _draw_losses(losses, log)
    _draw_metrics(metrics, log)
    return save_figure(figure, out_file)


def _draw_losses(axes: Axes, log: TrainingLog) -> None:
    styles = {name: dict(color=colour(i), linewidth=1.4) for i, name in enumerate(log.loss_parts)}
    styles['loss'] = dict(color=INK, linewidth=2.0)
    for name, style in styles.items():
        _draw_line(axes, log.points(name), 'sum of all' if name == 'loss' else name, style)
    for number, step in enumerate(log.resumed_at):
        label = 'resumed' if number == 0 else None
        axes.axvline(step, color=FAINT, linewidth=1, linestyle=':', label=label)
    _finish(axes, 'Training losses', 'iteration')


def _draw_metrics(axes: Axes, log: TrainingLog) -> None:
    if not log.val:
        style = dict(color=FAINT, ha='center', transform=axes.transAxes)
        axes.text(0.5, 0.5, 'no evaluation yet', **style)
    names = dict.fromkeys(name for line in log.val for name in metrics_of(line))
    for index, name in enumerate(main_metric_first(names)):
        points = [(line['step'], line[name]) for line in log.val if name in metrics_of(line)]
        style = dict(color=colour(index - 1), linewidth=1.4)
        if index == 0:
            style = dict(color=INK, linewidth=2.4)
        _draw_line(axes, points, f'{name.rpartition("/")[2]}  {points[-1][1]:.3f}', style)
    _finish(axes, 'Evaluation on the val split', 'epoch' if log.counts_epochs else 'iteration')


def _draw_line(axes: Axes, points: list[tuple[int, float]], label: str, style: dict) -> None:
    # A line of one point would be invisible.
    marker = 'o' if len(points) <= 25 else None
    steps, values = zip(*points, strict=True) if points else ((), ())
    axes.plot(steps, values, label=label, marker=marker, markersize=4, **style)


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
