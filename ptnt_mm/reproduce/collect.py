"""What trainings left in their work dirs: how far they came, and their last evaluation."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptnt_mm.logs import read_scalars, scalar_files
from ptnt_mm.reproduce.entries import NO_FIGURES, Entry, Figures

BOX, MASK = 'coco/bbox_mAP', 'coco/segm_mAP'
"""The figures that rank detectors, as mmdet logs them, in [0, 1]."""


@dataclass(frozen=True)
class Progress:
    """How far the training of an entry came.

    Attributes:
        entry: Which one.
        epoch: Of the last evaluation; 0 before the first.
        figures: What that gave.
    """

    entry: Entry
    epoch: int
    figures: Figures

    @property
    def finished(self) -> bool:
        """Whether the last epoch was evaluated."""
        return self.epoch >= self.entry.epochs

    @property
    def measured(self) -> Figures:
        """What may be compared with the paper: the figures after the last epoch, or none."""
        return self.figures if self.finished else NO_FIGURES

    def __str__(self) -> str:
        state = f'epoch {self.epoch} of {self.entry.epochs}' if self.epoch else 'nothing yet'
        shown = {'box AP': self.figures.box_ap, 'mask AP': self.figures.mask_ap}
        figures = (f'{name} {value:.1f}' for name, value in shown.items() if value is not None)
        return ', '.join([f'{self.entry.name}: {state}', *figures])


def collect(entry: Entry, work_dirs: Path) -> Progress:
    """Read the logs of an entry in ``work_dirs/<config>``, those of all its resumes.

    Raises:
        UserError: if a log is not MMEngine's.
    """
    last = last_evaluation(work_dirs / entry.name)
    if last is None:
        return Progress(entry, 0, NO_FIGURES)
    return Progress(entry, last['step'], Figures(_percent(last, BOX), _percent(last, MASK)))


def last_evaluation(work_dir: Path) -> dict[str, Any] | None:
    """The line of the newest evaluation in the logs of a run, or None.

    Raises:
        UserError: if a log is not MMEngine's.
    """
    # A later run's evaluations replace the earlier ones'.
    lines = [line for path in scalar_files(work_dir) for line in read_scalars(path) if BOX in line]
    return lines[-1] if lines else None


def _percent(line: dict[str, Any], metric: str) -> float | None:
    """As papers print it; None for what was not evaluated."""
    value = line.get(metric, -1)
    return round(100 * value, 1) if value >= 0 else None
