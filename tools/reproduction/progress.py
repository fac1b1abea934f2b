"""How far trainings got, and their last evaluation, from the logs in their work dirs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptnt_mm.utils.scalar_logs import read_scalars, scalar_files
from reproduction.entries import Entry, Figures


@dataclass(frozen=True)
class Progress:
    """How far the training of an entry got.

    Attributes:
        entry: The entry.
        done: Epochs or iterations at the last evaluation; 0 before the first.
        figures: The results of the last evaluation.
    """

    entry: Entry
    done: int
    figures: Figures

    @property
    def finished(self) -> bool:
        """True if the end of the schedule was evaluated."""
        return self.done >= self.entry.schedule.length

    @property
    def measured(self) -> Figures:
        """The figures at the end of the schedule; empty before that."""
        return self.figures if self.finished else {}

    def __str__(self) -> str:
        schedule = self.entry.schedule
        state = f'{schedule.unit} {self.done} of {schedule.length}' if self.done else 'nothing yet'
        figures = (f'{name} {value:.1f}' for name, value in self.figures.items())
        return ', '.join([f'{self.entry.name}: {state}', *figures])


def read_progress(entry: Entry, work_dirs: Path) -> Progress:
    """Read the logs of an entry and all its resumes in ``work_dirs/<config>``.

    Raises:
        UserError: if a log was not written by MMEngine.
    """
    metrics = entry.benchmark.metrics
    last = last_evaluation(work_dirs / entry.name, metrics[0].key)
    # COCO marks what cannot be evaluated, such as no object of a size, by -1.
    logged = {metric: last[metric.key] for metric in metrics if last.get(metric.key, -1) >= 0}
    figures = {metric.name: round(100 * v / metric.whole, 1) for metric, v in logged.items()}
    return Progress(entry, last.get('step', 0), figures)


def last_evaluation(work_dir: Path, key: str) -> dict[str, Any]:
    """Return the log line of a run's latest evaluation; empty before the first.

    Args:
        work_dir: The run's folder.
        key: A metric that every evaluation logs.

    Raises:
        UserError: if a log was not written by MMEngine.
    """
    # Log files are sorted by time, so the last line is from the latest run.
    lines = [line for path in scalar_files(work_dir) for line in read_scalars(path) if key in line]
    return lines[-1] if lines else {}
