"""The steps that a check tries on an image or two: training, evaluation, test-time augmentation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import nn

from ptnt_mm.check.data_sets import LoadedDataset
from ptnt_mm.check.trial.evaluation_step import Evaluation, why_not_evaluated, with_tta_pipeline
from ptnt_mm.check.trial.monitored import check_monitored
from ptnt_mm.check.trial.setup import why_not_tried
from ptnt_mm.check.trial.training_step import check_training_step
from ptnt_mm.config.view import ConfigView
from ptnt_mm.utils.findings import Finding, Severity, as_warning, note, of_kind
from ptnt_mm.utils.progress import waiting


@dataclass
class TriedSteps:
    """A config with all that its steps need.

    Attributes:
        model: The model; None if it could not be built.
        data: The data sets, read as far as possible.
        gpus: The number of processes that will train.
        thorough: Whether to try steps that take long.
        findings: The list of all findings, which grows with each step: after an error, nothing
            more is tried.
    """

    view: ConfigView
    model: nn.Module | None
    data: Sequence[LoadedDataset]
    gpus: int
    thorough: bool
    findings: list[Finding]

    def check_training(self) -> Iterator[Finding]:
        """Take a training step."""
        if reason := self._why_not_tried('train'):
            yield note('a training step', f'not tried: {reason}')
        elif self.model is not None:
            with waiting('Taking a training step'):
                yield from check_training_step(self.view, self.model, self.data, self.gpus)

    def check_evaluation(self, split: str) -> Iterator[Finding]:
        """Evaluate an image, 'val' or 'test'; compare the metrics with those that are watched."""
        if not self.view.split(split).is_evaluated:
            return
        if reason := self._why_not_tried(split) or why_not_evaluated(self.view, split):
            yield note(split, f'the evaluation was not tried: {reason}')
        elif self.model is not None:
            evaluation = Evaluation(self.view, split, self.model, self.data)
            with waiting('Evaluating an image'):
                yield from evaluation.check()
            if split == 'val' and evaluation.metrics is not None:
                yield from check_monitored(self.view, evaluation.metrics)

    def check_tta(self) -> Iterator[Finding]:
        """Evaluate a test image with test-time augmentation, if the config has it."""
        given = [key for key in ('tta_model', 'tta_pipeline') if self.view.config.get(key)]
        if len(given) == 2 and not self._why_not_tried('test') and self.model is not None:
            view = with_tta_pipeline(self.view)
            with waiting('Evaluating an image with test-time augmentation'):
                found = Evaluation(view, 'test', self.model, self.data, with_tta=True).check()
                # Training works without.
                yield from map(as_warning, found)

    def _why_not_tried(self, split: str) -> str:
        if of_kind(self.findings, Severity.ERROR):
            return 'it needs a config without errors'
        return why_not_tried(self.view, split, self.data, self.model, self.thorough)


def are_evaluated_alike(view: ConfigView) -> bool:
    """Whether test is evaluated as val is, with the same data."""
    keys = ('dataloader', 'evaluator')
    config = view.config
    return all(repr(config.get(f'val_{k}')) == repr(config.get(f'test_{k}')) for k in keys)
