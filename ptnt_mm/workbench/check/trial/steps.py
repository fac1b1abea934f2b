"""The steps that a check tries on an image or two: training, evaluation, test-time augmentation."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from mmengine.model import BaseModel
from torch import nn

from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.findings import Finding, Severity, as_warning, error, note, of_kind, ok
from ptnt_mm.utils.progress import waiting
from ptnt_mm.workbench.check.data_sets import LoadedDataset
from ptnt_mm.workbench.check.trial.evaluation import (
    Evaluation,
    check_monitored,
    why_not_evaluated,
)
from ptnt_mm.workbench.check.trial.failed_steps import StepFailure, at, describe
from ptnt_mm.workbench.check.trial.setup import (
    WHOLE,
    collate_of,
    load_samples,
    shrunk,
    sides,
    spread_over,
    undisturbed,
    why_not_tried,
)
from ptnt_mm.workbench.config.settings import type_name
from ptnt_mm.workbench.config.tta import check_tta_scales, with_tta
from ptnt_mm.workbench.config.view import ConfigView, Split


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
        """Take a training step on the CPU, without the optimizer."""
        where, model = 'a training step', self.model
        if reason := self._why_not_tried('train'):
            yield note(where, f'not tried: {reason}')
        elif model is None:
            return
        elif getattr(type(model), 'train_step', None) is not BaseModel.train_step:
            yield note(where, f'not tried: {type(model).__name__} has a custom train_step')
        else:
            try:
                with waiting('Taking a training step'):
                    train_once(self.view, model, self.data, self.gpus)
            except StepFailure as failed:
                yield error(*describe(failed, self.view), 'training would stop at its first step')
            else:
                yield ok(where, 'the loss of a few images and its gradients can be computed')

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
            view = with_tta(self.view)
            yield from check_tta_scales(self.view)
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


def train_once(
    view: ConfigView, model: nn.Module, data: Sequence[LoadedDataset], gpus: int
) -> None:
    """Compute the loss of a training batch of one or two images, and its gradients.

    Two if training has two: BatchNorm cannot learn from one value.

    Raises:
        StepFailure: if the data set, its pipeline or the model fails.
    """
    with undisturbed(view.scope):
        with at('train_dataloader.dataset'):
            _, samples = load_samples(view.train, data, partial(_load, view.custom_hooks))
            batch = view.train.batch_size * gpus
            # There may be a single image.
            samples = (samples * 2)[: max(min(batch, 2), 1)]
        for side in sides(view):
            try:
                _loss(view.train, model, samples, side)
                return
            except StepFailure:
                # Some models accept only the original size.
                if side == WHOLE:
                    raise


def _load(hooks: Sequence[Mapping], data_set: Any) -> list[dict]:
    """Load samples as training does, which may skip files that cannot be read."""
    for settings in hooks:
        if type_name(settings) == 'SkipCorruptImagesHook':
            HOOKS.build(settings).watch(data_set)
    return spread_over(data_set)


def _loss(split: Split, model: nn.Module, samples: list[dict], side: int) -> None:
    with at('train_dataloader'):
        smaller = [shrunk(sample, side, with_truth=True) for sample in samples]
        # Preprocessors pad annotations in place.
        batch = collate_of(split)(copy.deepcopy(smaller))
    with at('model'), _small_padding(model, side):
        model.train()  # mmdet's distillation detectors return nothing
        batch = model.data_preprocessor(batch, True)
        total, _ = model.parse_losses(model._run_forward(batch, mode='loss'))
        total.backward()
        model.zero_grad()


@contextmanager
def _small_padding(model: nn.Module, side: int) -> Iterator[None]:
    """Make preprocessors that pad to a fixed size pad to a smaller one."""
    preprocessor = model.data_preprocessor
    augments = getattr(preprocessor, 'batch_augments', None)
    parts = [preprocessor, *(augments if isinstance(augments, nn.ModuleList) else ())]
    sizes = [(part, part.size) for part in parts if isinstance(getattr(part, 'size', 0), tuple)]
    try:
        for part, size in sizes:
            part.size = tuple(n if n < side else side + n % 64 for n in size)
        yield
    finally:
        for part, size in sizes:
            part.size = size
