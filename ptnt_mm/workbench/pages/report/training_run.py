"""A run's work dir: its config, its log, its predictions, and its training curves."""

import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mmengine.config import Config

from ptnt_mm.hooks.run_checkpoints import best_checkpoint
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import counted, format_bytes
from ptnt_mm.workbench.config.hosts import import_host
from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.settings import short_name, type_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.scalar_logs import (
    TrainingLog,
    metrics_of,
    read_training_log,
    scalar_files,
)

if TYPE_CHECKING:
    from ptnt_mm.workbench.pages.report.detection import DetectionReport
    from ptnt_mm.workbench.pages.report.segmentation import SegmentationReport


class Curves(NamedTuple):
    """Curves that share a chart: its title, a note for the reader, and the unit of the x axis."""

    title: str
    note: str = ''
    noisy: bool = False  # smoothing helps
    unit: str = 'iteration'


_LOSS = Curves('Loss', noisy=True)
_LOSS_PARTS = Curves('Parts of the loss', noisy=True)
_GRADIENT = Curves(
    'Gradient norm',
    'The norm of all gradients together, before clipping. Where optim_wrapper.clip_grad sets '
    'max_norm, larger gradients are scaled down to that norm.',
    noisy=True,
)
_LOGGED_CURVES = {
    'grad_norm': _GRADIENT,
    'lr': Curves('Learning rate'),
    'time': Curves('Seconds per iteration', noisy=True),
    'memory': Curves('GPU memory (MiB)'),
}
"""Scalars that MMEngine logs besides losses."""

_LOGGED = re.compile(r' - INFO - (Command|Versions|Revision of .*?|Weights): (.*)')
"""The beginning of the log file: see :func:`ptnt_mm.workbench.engine.runner.how_to_repeat`."""

_NAMED_BY_HEAD = {'EncoderDecoder': 'decode_head', 'ImageClassifier': ''}
"""Classes of many models, and the part that names one; classifiers are named by the backbone."""

_SAVED = re.compile(r' - INFO - Saving checkpoint at (\d{1,9}) (epoch|iteration)s')


@dataclass(frozen=True)
class TrainingRun:
    """A work dir, finished or not."""

    work_dir: Path
    name: str  # on the page
    config: Config  # of the last start or resume
    log: TrainingLog  # of the start and all resumes
    predictions: Path  # the folder of its predictions: the work dir, or one outside of it

    @cached_property
    def checkpoint(self) -> Path | None:
        """The best intact checkpoint, otherwise the newest."""
        return best_checkpoint(self.work_dir)

    @cached_property
    def view(self) -> ConfigView:
        """What its config means."""
        return ConfigView(self.config)

    @property
    def task(self) -> str | None:
        """'detection' or 'segmentation'; None if its predictions cannot be read here."""
        host = self.view.host
        return host.task if host and host.task in ('detection', 'segmentation') else None

    @property
    def split(self) -> str:
        """Which split its test data are: often the validation split, and then that is the name."""
        tested = self.view.test.files
        for split, name in (('val', 'validation'), ('train', 'training')):
            if tested and tested == self.view.split(split).files:
                return name
        return 'test'

    def evaluation_config(self) -> Config:
        """The config, with a single evaluator, which writes the predictions."""
        config = copy.copy(self.config)
        kind, evaluator = self._reading()
        output = {kind.output: str(self.predictions / 'predictions')}
        # Others may write files too.
        config.test_evaluator = dict(evaluator, **output)
        return config

    def has_predictions(self) -> bool:
        """Whether all predictions exist, and are newer than the weights, or the log without any."""
        kind, evaluator = self._reading()
        files = kind.prediction_files(self.view, evaluator, self.predictions).values()
        times = [file.stat().st_mtime if file.is_file() else 0 for file in files]
        trained = self.checkpoint or scalar_files(self.work_dir)[-1]
        return min(times, default=0) >= trained.stat().st_mtime

    def read_report(self) -> 'DetectionReport | SegmentationReport':
        """Compare predictions with the ground truth; raises a UserError if one cannot be read."""
        kind, evaluator = self._reading()
        return kind.read(self.view, evaluator, self.predictions)

    @cached_property
    def _text(self) -> str:
        """The log file of the last start or resume; empty if there is none."""
        folder = scalar_files(self.work_dir)[-1].parents[1]
        file = folder / f'{folder.name}.log'
        return file.read_text(encoding='utf-8', errors='replace') if file.is_file() else ''

    def progress(self) -> str:
        """Completed training, and how much was planned."""
        unit = 'epoch' if self.log.counts_epochs else 'iteration'
        saved = (int(number) for number, of in _SAVED.findall(self._text) if of == unit)
        done = max([self.log.completed, *saved])
        loop = self.view.train.loop
        planned = loop.get('max_epochs' if self.log.counts_epochs else 'max_iters')
        text = counted(done, unit)
        if isinstance(planned, int) and planned > done:
            text = f'{done:,} of {counted(planned, unit)}'
        begun = self.log.train[-1].get('epoch', done)
        return f'{text}: stopped in epoch {begun}, or still running' if begun > done else text

    def facts(self) -> Iterator[tuple[str, str]]:
        """Names and values: the model, how it was trained, and for how long."""
        started = scalar_files(self.work_dir)[-1].parents[1].name
        yield 'Model', network_name(self.view)
        yield 'Started', re.sub(r'(....)(..)(..)_(..)(..).*', r'\1-\2-\3 \4:\5', started)
        yield 'Trained for', self.progress()
        yield 'Last logged iteration', str(self.log.train[-1]['step'])
        seconds, before = 0, 0
        for step, of_iteration in self.log.points('time'):
            seconds += (step - before) * of_iteration
            before = step
        yield 'Time', f'{seconds / 3600:.1f} h' if seconds > 3600 else f'{seconds / 60:.1f} min'
        if memory := self.log.points('memory'):
            yield 'Peak memory', format_bytes(int(max(mib for _, mib in memory) * 2**20))
        yield 'Checkpoint', self.checkpoint.name if self.checkpoint else 'none'

    def how_to_repeat(self) -> Iterator[tuple[str, str]]:
        """Names and values from the beginning of the log: the command, versions, weights."""
        for name, value in _LOGGED.findall(self._text):
            yield name.partition(' ')[0], value

    def curves(self) -> Iterator[dict[str, Any]]:
        """Points of all curves.

        Yields:
            ``chart``, a :class:`Curves`; ``curve``, its name in the log; ``step`` and ``value``.
        """
        unit = 'epoch' if self.log.counts_epochs else 'iteration'
        for line in self.log.val:
            for key, value in metrics_of(line).items():
                # 'coco/segm_mAP_50' is mAP_50 of coco/segm.
                of, _, curve = key.partition('_') if '_' in key else ('', '', key)
                chart = Curves(f'Evaluation {of}'.strip(), unit=unit)
                yield dict(chart=chart, curve=curve, step=line['step'], value=value)
        parts = self.log.loss_parts
        of_parts = dict.fromkeys(parts, _LOSS_PARTS) if len(parts) > 1 else {}
        for curve, chart in {'loss': _LOSS, **of_parts, **_LOGGED_CURVES}.items():
            for step, value in self.log.points(curve):
                yield dict(chart=chart, curve=curve, step=step, value=value)

    def _reading(self) -> tuple['type[DetectionReport | SegmentationReport]', dict]:
        """The class of the report, and the settings of the evaluator that it reads from."""
        if self.task is None:
            scope = self.view.scope
            raise UserError(f'reports read predictions of mmdet and mmseg, not of {scope}')
        # Importing a report imports its host.
        import_host(self.view.scope)
        if self.task == 'detection':
            from ptnt_mm.workbench.pages.report.detection import DetectionReport as Report
        else:
            from ptnt_mm.workbench.pages.report.segmentation import SegmentationReport as Report
        settings = self.view.test.evaluators
        for evaluator in settings:
            if type_name(evaluator) in Report.metrics:
                return Report, evaluator
        found = ', '.join(map(type_name, settings)) or 'missing'
        raise UserError(f'its test_evaluator is {found}: expected {" or ".join(Report.metrics)}')


def read_run(work_dir: Path, name: str) -> TrainingRun:
    """Read a work dir, or raise a UserError if there is no log or no config."""
    log = read_training_log(work_dir)
    config = scalar_files(work_dir)[-1].with_name('config.py')
    return TrainingRun(work_dir, name, read_config(config), log, predictions=work_dir)


def network_name(view: ConfigView) -> str:
    """What people call a model: 'GFL, efficientnet_lite0', 'RetinaNet, ResNet-50'."""
    model, backbone = view.model, view.backbone
    method = short_name(model)
    if method in _NAMED_BY_HEAD:
        method = short_name(model.get(_NAMED_BY_HEAD[method]) or {}).removesuffix('Head')
    arch, depth = backbone.get('arch'), backbone.get('depth')
    network = short_name(backbone)
    if network == 'TimmFeatures':
        network = str(backbone.get('model')).removeprefix('tf_')
    elif isinstance(depth, int):
        network = f'{network}-{depth}'
    elif isinstance(arch, str):
        network = f'{network} {arch}'
    return ', '.join(filter(None, (method, network)))
