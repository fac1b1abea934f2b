"""How far trainings got, and their last evaluation, from the logs in their work dirs."""

from dataclasses import dataclass
from pathlib import Path

from ptnt_mm.utils.scalar_logs import read_scalars, scalar_files
from reproduction.entries import Entry, Figures, Metric


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
    return Progress(entry, *last_evaluation(work_dirs / entry.name, entry.benchmark.metrics))


def last_evaluation(work_dir: Path, metrics: tuple[Metric, ...]) -> tuple[int, Figures]:
    """Return the epoch or iteration of a run's last evaluation, and its figures.

    Before the first evaluation they are 0 and empty.

    Raises:
        UserError: if a log was not written by MMEngine.
    """
    last = {'step': 0}
    # Log files are sorted by time, so the last line is from the latest run.
    for file in scalar_files(work_dir):
        for line in read_scalars(file):
            last = line if any(metric.key in line for metric in metrics) else last
    # COCO marks what cannot be evaluated, such as no object of a size, by -1.
    known = [metric for metric in metrics if last.get(metric.key, -1) >= 0]
    return last['step'], {m.name: round(100 * last[m.key] / m.whole, 1) for m in known}
