"""Read the scalars that MMEngine logs: losses and evaluation metrics."""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ptnt_mm.utils.errors import UserError

# Keys that MMEngine logs besides losses and metrics.
_BOOKKEEPING = frozenset({'step', 'iter', 'epoch', 'time', 'data_time', 'memory', 'lr', 'base_lr'})


class TrainingLog(NamedTuple):
    """The log lines of a training run and all its resumes, in step order.

    Attributes:
        train: Lines with losses; ``step`` counts iterations.
        val: Lines of evaluations; ``step`` counts epochs, or iterations if training has no epochs.
        resumed_at: The first logged iteration of each resume.
    """

    train: list[dict[str, Any]]
    val: list[dict[str, Any]]
    resumed_at: list[int]

    @property
    def counts_epochs(self) -> bool:
        """Whether training is divided into epochs."""
        return 'epoch' in self.train[-1]

    @property
    def completed(self) -> int:
        """The number of completed epochs, or iterations if training has no epochs.

        The log does not contain the end of an epoch, only an evaluation or the next epoch.
        """
        last = self.train[-1]
        trained = last['epoch'] - 1 if self.counts_epochs else last['step']
        return max([trained, *(line['step'] for line in self.val)])

    @property
    def loss_parts(self) -> list[str]:
        """The names in the log of the losses that add up to ``loss``."""
        return [key for key in self.train[-1] if 'loss' in key and key != 'loss']

    def points(self, key: str) -> list[tuple[int, float]]:
        """Iterations and values of a key in lines with losses; only finite values."""
        points = ((line['step'], line.get(key)) for line in self.train)
        return [(x, y) for x, y in points if isinstance(y, int | float) and math.isfinite(y)]


def scalar_files(work_dir: Path) -> list[Path]:
    """Return the log files of a run and of all its resumes, oldest first."""
    # The folders are named by start time.
    return sorted(work_dir.glob('*/vis_data/scalars.json'))


def read_scalars(path: Path) -> list[dict[str, Any]]:
    """Read one file of JSON lines; drop a last line that a killed process left unfinished.

    Raises:
        UserError: if a line was not written by MMEngine.
    """
    texts = [text for text in path.read_text(encoding='utf-8').splitlines() if text.strip()]
    lines = []
    for number, text in enumerate(texts, start=1):
        try:
            line = json.loads(text)
            line['step'] = int(line['step'])
            if 'epoch' in line:
                line['epoch'] = int(line['epoch'])
        except (ValueError, KeyError, TypeError) as error:
            if number == len(texts):
                break
            raise UserError(
                f'{path}, line {number}, was not logged by MMEngine: expected a JSON dict with '
                f'a "step": {text[:60]!r}. Move this file away to read the rest.'
            ) from error
        lines.append(line)
    return lines


def read_training_log(work_dir: Path) -> TrainingLog:
    """Join the logs of a training run and its resumes. Where they overlap, the later one counts.

    Raises:
        UserError: if there is no log, if it is empty, or if it was not written by MMEngine.
    """
    paths = scalar_files(work_dir)
    if not paths:
        raise UserError(
            f'{work_dir} contains no training log (<timestamp>/vis_data/scalars.json): pass the '
            'work dir of a run'
        )
    log = TrainingLog([], [], [])
    for path in paths:
        # A later run's lines replace earlier ones from its first step on.
        lines = read_scalars(path)
        train = [line for line in lines if 'loss' in line]
        val = [line for line in lines if _is_evaluation(line)]
        if train and log.train:
            if train[0]['step'] > log.train[0]['step']:
                log.resumed_at.append(train[0]['step'])
            else:
                # A new run in an old folder: drop the evaluations of the earlier one.
                log.val.clear()
                log.resumed_at.clear()
        if train:
            first = train[0]
            log.train[:] = [line for line in log.train if line['step'] < first['step']] + train
            # An epoch that is trained again has not been evaluated yet.
            begun = first.get('epoch', first['step'])
            log.val[:] = [line for line in log.val if line['step'] < begun]
        if val:
            log.val[:] = [line for line in log.val if line['step'] < val[0]['step']] + val
    if not log.train:
        raise UserError(
            f'The training log of {work_dir} contains no losses yet: the first line is written '
            "after the number of iterations in the logger hook's interval."
        )
    return log


def last_evaluation(work_dir: Path) -> dict[str, Any] | None:
    """Return the line of a run's last evaluation, or of its last resume's; None before the first.

    Raises:
        UserError: if a log was not written by MMEngine.
    """
    lines = [line for file in scalar_files(work_dir) for line in read_scalars(file)]
    return next(filter(_is_evaluation, reversed(lines)), None)


def _is_evaluation(line: dict[str, Any]) -> bool:
    return 'loss' not in line and bool(metrics_of(line))


def main_metric_first(names: Iterable[str]) -> list[str]:
    """Sort the metrics of an evaluation: mmdet logs the main one first, mmseg mIoU second."""
    return sorted(names, key=lambda name: name != 'mIoU')


def metrics_of(line: dict[str, Any]) -> dict[str, float]:
    """Return the metrics of an evaluation, without those that COCO reports as -1 (no objects)."""
    return {
        name: float(value)
        for name, value in line.items()
        if name not in _BOOKKEEPING and isinstance(value, int | float) and value >= 0
    }


def metrics_in_percent(line: dict[str, Any], keys: Mapping[str, str]) -> dict[str, float]:
    """Return metrics of an evaluation in percent, to a decimal: COCO's are logged as fractions.

    Args:
        line: The line of the log.
        keys: The metrics' keys in the log, by the names that they get. Missing ones are omitted,
            as are those that COCO reports as -1 (no objects).
    """
    found = metrics_of(line)
    return {
        name: round((100 if key.startswith('coco/') else 1) * found[key], 1)
        for name, key in keys.items()
        if key in found
    }
