"""Evaluation of one image: its pipeline, the model with its post-processing, the metrics."""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from mmengine.config import ConfigDict
from mmengine.registry import MODELS
from torch import Tensor, nn

from ptnt_mm.check.data_sets import LoadedDataset, evenly_spread
from ptnt_mm.check.trial.failed_steps import StepFailure, at, describe
from ptnt_mm.check.trial.few_images import collate_of, load_samples, shrunk
from ptnt_mm.check.trial.one_image_metrics import left_out, measure_one_image
from ptnt_mm.check.trial.setup import sides, undisturbed
from ptnt_mm.config.settings import dicts_within, type_name
from ptnt_mm.config.view import ConfigView
from ptnt_mm.explain.frames import failing_line, failing_part
from ptnt_mm.explain.registered import arguments_of, classes_named
from ptnt_mm.utils.findings import Finding, error, note, ok

_META_KEYS = ('img_id', 'img_path', 'ori_shape', 'img_shape', 'pad_shape', 'scale_factor', 'flip',
              'flip_direction', 'instances', 'seg_map_path', 'reduce_zero_label',
              'sample_idx')  # fmt: skip
"""Meta keys that models and metrics read."""


@dataclass
class Evaluation:
    """Evaluation of one image, or of two of different sizes if batches are larger.

    Attributes:
        split: 'val' or 'test'.
        model: Its score thresholds should be 0, so that there are predictions.
        data: The data sets that were read.
        with_tta: Whether to evaluate as ``ptnt test --tta`` does.
        metrics: Metrics by name; None if the evaluation failed or an evaluator was not tried.
    """

    view: ConfigView
    split: str
    model: nn.Module
    data: Sequence[LoadedDataset]
    with_tta: bool = False
    metrics: dict[str, Any] | None = None

    def check(self) -> Iterator[Finding]:
        """Evaluate; an error contains the wrong setting."""
        failed = None
        for side in sides(self.view):
            failed = self._failure(side)
            # Some models accept only the original size.
            if failed is None or not failed.where.startswith('model'):
                break
        if failed is not None:
            lacking = list(self._missing_meta_keys(failed))
            advice = 'the first evaluation would stop'
            yield from lacking or [error(*describe(failed, self.view), advice)]
            return
        if names := left_out(self.view, self.split):
            yield note(self.split, f'{", ".join(names)} was not tried')
            self.metrics = None
        what = 'evaluated with test-time augmentation' if self.with_tta else 'evaluated'
        named = f': {", ".join(self.metrics)}' if self.metrics else ''
        yield ok(self.split, f'an image is {what}{named}')

    def _failure(self, side: int) -> StepFailure | None:
        """Evaluate images with sides of ``side`` pixels; return the error, or None."""
        try:
            with undisturbed(self.view.scope):
                self.metrics = self._evaluate(side)
        except StepFailure as failed:
            return failed
        return None

    def _evaluate(self, side: int) -> dict[str, Any]:
        """The metrics of an image by name; raises a StepFailure that names a part of the config."""
        view, split = self.view, self.split
        collate = collate_of(view, split)
        with at(f'{split}_dataloader.dataset'):
            metainfo, samples = load_samples(view, split, self.data, self._chosen)
        with at(f'{split}_dataloader'):
            batch = collate(samples)
            if len(set(map(_size, samples))) == 1:
                batch = collate([shrunk(sample, side) for sample in samples])
        with at('tta_model' if self.with_tta else 'model'), torch.no_grad():
            model = self.model.eval()
            if self.with_tta:
                model = MODELS.build(dict(view.config.tta_model, module=model)).eval()
            predicted = model.test_step(batch)
        with at(f'{split}_evaluator'):
            return measure_one_image(view, split, metainfo, self.data, batch, predicted)

    def _chosen(self, data_set: Any) -> list[dict]:
        if self.with_tta or self.view.split(self.split).batch_size == 1:
            return [data_set[0]]
        # A data set that was not read before, such as CIFAR10, has all of its images here.
        first, *others = (data_set[i] for i in evenly_spread(range(len(data_set))))
        unlike = [other for other in others if _size(other) != _size(first)]
        return [first, *(unlike or others)[:1]]

    def _missing_meta_keys(self, failed: StepFailure) -> Iterator[Finding]:
        """Errors for the steps that do not pack a meta key that the failure names in quotes."""
        if failed.where.startswith(f'{self.split}_dataloader'):
            return
        packed = {
            path: tuple(step.get('meta_keys') or _default_keys(step, self.view.scope))
            for path, step in _packing(self.view, self.split).items()
        }
        cause = failed.__cause__
        text, user = f'{cause} {failing_line(cause)}', failing_part(cause) or failed.where
        known = {key for keys in packed.values() for key in keys}
        missing = [key for key in _META_KEYS if repr(key) in text and key not in known]
        for key, path in product(missing, packed):
            if self.with_tta:
                path = path.replace(f'{self.split}_dataloader.dataset.pipeline', 'tta_pipeline')
            yield error(f'{path}.meta_keys', f'lacks {key!r}, which {user} needs', f'add {key!r}')


def why_not_evaluated(view: ConfigView, split: str) -> str:
    """Why an evaluation cannot be tried without its loop; empty if it can."""
    loop = type_name(view.split(split).loop)
    if loop not in ('', 'ValLoop', 'TestLoop'):
        return f'{loop} evaluates in its own way'
    hooks = map(type_name, view.custom_hooks)
    prepares = [name for name in hooks if name.startswith('PrepareProto')]
    return f'{prepares[0]} prepares the model' if prepares else ''


def with_tta_pipeline(view: ConfigView) -> ConfigView:
    """A copy of a config whose test data goes through the pipeline of ``ptnt test --tta``."""
    config = copy.deepcopy(view.config)
    for data_set in ConfigView(config).test.data_sets:
        data_set.settings['pipeline'] = config.tta_pipeline
    return ConfigView(config)


def _size(sample: dict) -> tuple[int, ...]:
    image = sample.get('inputs')
    return tuple(image.shape) if isinstance(image, Tensor) else ()


def _packing(view: ConfigView, split: str) -> dict[str, ConfigDict]:
    """The steps of a split's pipelines that choose meta keys, by their paths."""
    where = f'{split}_dataloader.dataset'
    inside = dicts_within(view.split(split).dataset, where)
    return {path: step for path, step in inside if type_name(step).startswith('Pack')}


def _default_keys(step: ConfigDict, scope: str) -> tuple[str, ...]:
    for cls in classes_named(step.get('type'), step.get('_scope_', scope)):
        parameter = arguments_of(cls).parameters.get('meta_keys')
        if parameter is not None:
            return tuple(parameter.default)
    return ()
