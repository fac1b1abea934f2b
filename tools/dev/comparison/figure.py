"""The figure of a comparison: a point for every seed, a line for the mean."""

import statistics
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from comparison.runs import BACKBONES, CONTENDERS, DETECTORS, Contender, Outcome
from ptnt_mm.visualization.figures import FAINT, INK, check_out_file, colour, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS = (
    ('retinanet', 'box AP', attrgetter('box_ap')),
    ('mask_rcnn', 'box AP', attrgetter('box_ap')),
    ('mask_rcnn', 'mask AP', attrgetter('mask_ap')),
)


def draw_comparison(outcomes: list[Outcome], out_file: str | Path) -> Path:
    """Draw the box AP of every run, one panel per detector, and the mask AP beside them.

    Raises:
        UserError: if the figure cannot be written.
    """
    from matplotlib.figure import Figure

    out_file = Path(out_file)
    check_out_file(out_file)
    figure = Figure(figsize=(13, 4), layout='constrained')
    panels = figure.subplots(1, len(_PANELS), sharey=True)
    for axes, (detector, label, value) in zip(panels, _PANELS, strict=True):
        contenders = [contender for contender in CONTENDERS if contender.detector == detector]
        for place, contender in enumerate(contenders):
            points = [100 * value(run) for run in outcomes if run.name == contender.name]
            _draw(axes, place, points)
        _finish(axes, contenders)
        title = f'{DETECTORS[detector]}, {label}'
        axes.set_title(title, loc='left', fontsize=12, weight='bold', color=INK)
    panels[0].set_ylabel('percent, on the val split', color=INK)
    panels[0].set_ylim(bottom=0)
    return save(figure, out_file)


def _draw(axes: 'Axes', place: int, points: list[float]) -> None:
    """Draw one contender: its seeds side by side, with a line at their mean."""
    if not points:
        return
    first = place - 0.09 * (len(points) - 1)
    sides = [first + 0.18 * number for number in range(len(points))]
    axes.plot(sides, points, 'o', color=colour(place), markersize=6)
    mean = statistics.mean(points)
    axes.plot([place - 0.35, place + 0.35], [mean, mean], color=colour(place), linewidth=1.6)


def _finish(axes: 'Axes', contenders: list[Contender]) -> None:
    names = [BACKBONES[contender.backbone] for contender in contenders]
    axes.set_xticks(range(len(names)), names, fontsize=8, color=INK)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(axis='y', color=FAINT, alpha=0.25)
    axes.spines[['top', 'right']].set_visible(False)
