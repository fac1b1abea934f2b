"""A run's work dir: its config, its log, its predictions, and the curves of its training."""

import copy
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from mmengine.config import Config

from ptnt_mm.engine.config import kind_of, read_config
from ptnt_mm.engine.data_files import evaluators
from ptnt_mm.engine.hosts import HOSTS, import_host
from ptnt_mm.engine.work_dir import latest_checkpoint
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.scalar_logs import TrainingLog, metrics_of, read_training_log, scalar_files
from ptnt_mm.utils.text import binary

_GROUPS = {
    'lr': 'Learning rate',
    'time': 'Seconds per iteration',
    'images_per_second': 'Images per second',
    'data_share': 'Share of data loading in the time',
    'memory': 'Memory on the GPU (MiB)',
    'memory_mib': 'Memory (MiB)',
    'grad_norm': 'Norm of the gradient',
    'gradient_norm': 'Norm of the gradient',
}
"""What MMEngine and our health hook log besides losses: its title."""

_LOGGED = re.compile(r' - INFO - (Command|Versions|Revision of .*?|Weights): (.*)')
"""What the log file begins with: see :func:`ptnt_mm.engine.runner.how_to_repeat`."""


@dataclass(frozen=True)
class TrainingRun:
    """What a training left."""

    work_dir: Path
    name: str  # what a page calls it
    config: Config  # of the last time that it was started or resumed
    log: TrainingLog  # of all these times

    @cached_property
    def checkpoint(self) -> Path | None:
        """The newest one that is whole."""
        return latest_checkpoint(self.work_dir)

    @property
    def task(self) -> str | None:
        """'detection' or 'segmentation'; None if its predictions are not known here."""
        host = HOSTS.get(self.config.get('default_scope'))
        return host.task if host and host.task in ('detection', 'segmentation') else None

    def evaluation_config(self) -> Config:
        """The config, with an evaluator that leaves predictions in the work dir."""
        config = copy.deepcopy(self.config)
        reader, evaluator = self._reader(config)
        evaluator[reader.OUTPUT] = str(self.work_dir / 'predictions')
        return config

    def has_predictions(self) -> bool:
        """Whether all predictions are there, and newer than the weights, or else than the log."""
        reader, evaluator = self._reader(self.config)
        files = reader.find_predictions(self.config, evaluator, self.work_dir).values()
        times = [file.stat().st_mtime if file.is_file() else 0 for file in files]
        trained = self.checkpoint or scalar_files(self.work_dir)[-1]
        return min(times, default=0) >= trained.stat().st_mtime

    def read_report(self) -> Any:
        """Compare predictions with the ground truth; raises a UserError if one cannot be read."""
        reader, evaluator = self._reader(self.config)
        return reader.read_report(self.config, evaluator, self.work_dir)

    def facts(self) -> Iterator[tuple[str, str]]:
        """What was trained, how, and for how long: names and values."""
        # The newest one of those that are named by a time.
        folder = scalar_files(self.work_dir)[-1].parents[1]
        model = self.config.get('model') or {}
        backbone = model.get('backbone') or {}
        arch = backbone.get('arch')
        parts = kind_of(model), kind_of(backbone), arch if isinstance(arch, str) else ''
        yield 'Model', ' '.join(filter(None, parts))
        yield 'Started', re.sub(r'(....)(..)(..)_(..)(..).*', r'\1-\2-\3 \4:\5', folder.name)
        lines, seconds, before = self.log.train, 0, 0
        for line in lines:
            seconds += (line['step'] - before) * line.get('time', 0)
            before = line['step']
        epochs = f'{lines[-1]["epoch"]} epochs, ' if self.log.counts_epochs else ''
        yield 'Trained for', f'{epochs}{lines[-1]["step"]} iterations'
        yield 'Time', f'{seconds / 3600:.1f} h' if seconds > 3600 else f'{seconds / 60:.1f} min'
        # MMEngine knows that of a GPU, our hook that of the process, too.
        if memory := max(line.get('memory') or line.get('memory_mib') or 0 for line in lines):
            yield 'Peak memory', binary(int(memory * 2**20))
        yield 'Checkpoint', self.checkpoint.name if self.checkpoint else 'none'
        file = folder / f'{folder.name}.log'
        if file.is_file():
            found = _LOGGED.findall(file.read_text(encoding='utf-8', errors='replace'))
            yield from ((name.partition(' ')[0], value) for name, value in found)

    def curves(self) -> Iterator[dict[str, Any]]:
        """Points of all curves.

        Yields:
            ``group``, a title; ``unit``, what is counted; ``curve``, as it is called in the log;
            ``step`` and ``value``.
        """
        unit = 'epoch' if self.log.counts_epochs else 'iteration'
        for line in self.log.val:
            for key, value in metrics_of(line).items():
                # 'coco/segm_mAP_50' is mAP_50 of coco/segm.
                of, _, curve = key.partition('_') if '_' in key else ('', '', key)
                group = f'Evaluation {of}'.strip()
                yield dict(group=group, unit=unit, curve=curve, step=line['step'], value=value)
        parts = self.log.loss_parts
        of_parts = dict.fromkeys(parts, 'Parts of the loss') if len(parts) > 1 else {}
        for curve, group in {'loss': 'Loss', **of_parts, **_GROUPS}.items():
            for step, value in self.log.points(curve):
                yield dict(group=group, unit='iteration', curve=curve, step=step, value=value)

    def _reader(self, config: Config) -> tuple[ModuleType, dict]:
        """The file of this folder that knows the predictions, and their evaluator."""
        if self.task is None:
            raise UserError(f'predictions of {config.get("default_scope")} cannot be read here')
        import_host(config.default_scope)
        reader = importlib.import_module(f'{__package__}.{self.task}')
        settings = evaluators(config, 'test')
        for evaluator in settings:
            if kind_of(evaluator) == reader.METRIC:
                return reader, evaluator
        found = ', '.join(map(kind_of, settings)) or 'not there'
        raise UserError(f'its test_evaluator is {found}: expected {reader.METRIC}')


def read_run(work_dir: Path, name: str) -> TrainingRun:
    """Read what a training left, or raise a UserError if there is no log or no config."""
    log = read_training_log(work_dir)
    config = scalar_files(work_dir)[-1].with_name('config.py')
    return TrainingRun(work_dir, name, read_config(str(config)), log)
