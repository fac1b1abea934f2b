"""Evaluation of one image: its pipeline, the model with its post-processing, the metrics."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from mmengine.config import Config, ConfigDict
from mmengine.registry import MODELS
from torch import Tensor, nn

from ptnt_mm.check.data_sets import Data
from ptnt_mm.check.failed_steps import StepError, at, describe, failing_class
from ptnt_mm.check.few_images import collate_of, few_images, shrunk, take
from ptnt_mm.check.one_image_metrics import left_out, measure_one_image
from ptnt_mm.check.trial import sides, undisturbed
from ptnt_mm.engine.constructors import arguments_of, classes_named
from ptnt_mm.engine.data_files import data_sets
from ptnt_mm.engine.hosts import scope_of
from ptnt_mm.engine.settings import dicts_within, kind_of
from ptnt_mm.utils.findings import Finding, error, note, ok

_META_KEYS = ('img_id', 'img_path', 'ori_shape', 'img_shape', 'pad_shape', 'scale_factor', 'flip',
              'flip_direction', 'instances')  # fmt: skip
"""Meta keys that models and metrics read; each Pack transform has more by default."""


NO_KEYS: Mapping[str, list[str]] = MappingProxyType({})


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

    config: Config
    split: str
    model: nn.Module
    data: Sequence[Data]
    with_tta: bool = False
    metrics: dict[str, Any] | None = None

    @property
    def scope(self) -> str:
        """The config's default scope."""
        return scope_of(self.config)

    def check(self) -> Iterator[Finding]:
        """Evaluate; an error contains the wrong setting."""
        what = 'evaluated with test-time augmentation' if self.with_tta else 'evaluated'
        failed = None
        for side in sides(self.config):
            failed = self._failure(side)
            if failed is None:
                break
            if lacking := self._lacking(side):
                yield from lacking
                return
            # Some models accept only the original size.
            if not failed.where.startswith('model'):
                break
        if failed is not None:
            advice = 'the first evaluation would stop'
            yield error(*describe(failed, self.config), advice)
            return
        if names := left_out(self.config, self.split):
            yield note(self.split, f'{", ".join(names)} was not tried')
            self.metrics = None
        named = f': {", ".join(self.metrics)}' if self.metrics else ''
        yield ok(self.split, f'an image is {what}{named}')

    def _evaluate(self, config: Config, side: int) -> dict[str, Any]:
        """The metrics of an image by name; raises a StepError that names a part of the config."""
        split = self.split
        collate = collate_of(config, split)
        with at(f'{split}_dataloader.dataset'):
            data_set = few_images(config, split, self.data)
            samples = self._chosen(data_set)
        with at(f'{split}_dataloader'):
            batch = collate(samples)
            if len(set(map(_size, samples))) == 1:
                batch = collate([shrunk(sample, side) for sample in samples])
        with at('tta_model' if self.with_tta else 'model'), torch.no_grad():
            model = self.model.eval()
            if self.with_tta:
                model = MODELS.build(dict(config.tta_model, module=model)).eval()
            predicted = model.test_step(batch)
        with at(f'{split}_evaluator'):
            return measure_one_image(config, split, data_set.metainfo, self.data, batch, predicted)

    def _chosen(self, data_set: Any) -> list[dict]:
        if self.with_tta or self.config[f'{self.split}_dataloader'].get('batch_size', 1) == 1:
            return take(data_set, 1)
        first, *others = take(data_set, len(data_set))
        unlike = [other for other in others if _size(other) != _size(first)]
        return [first, *(unlike or others)[:1]]

    def _lacking(self, side: int) -> list[Finding]:
        """An error for the missing meta keys, if they are why an evaluation fails."""
        packs = _packing(self.config, self.split)
        absent = {
            path: [key for key in _known_keys(self.scope, step) if key not in self._stated(step)]
            for path, step in packs.items()
        }
        if self._failure(side, absent) is not None:
            return []
        found = []
        for path, keys in absent.items():
            needed, users = [], []
            for key in keys:
                fewer = {**absent, path: [other for other in keys if other != key]}
                if (failed := self._failure(side, fewer)) is not None:
                    needed.append(key)
                    users.append(failing_class(failed.__cause__) or failed.where)
            if needed:
                keys_text = ', '.join(map(repr, needed))
                what = f'lacks {keys_text}, which {", ".join(dict.fromkeys(users))} needs'
                if self.with_tta:
                    path = path.replace(f'{self.split}_dataloader.dataset.pipeline', 'tta_pipeline')
                found.append(error(f'{path}.meta_keys', what, f'add {keys_text}'))
        return found

    def _stated(self, step: ConfigDict) -> tuple[str, ...]:
        """The meta keys of a step, stated or by default."""
        return tuple(step.get('meta_keys') or _default_keys(step, self.scope))

    def _failure(self, side: int, more: Mapping[str, list[str]] = NO_KEYS) -> StepError | None:
        """Evaluate with more meta keys for steps, by their paths; return the error, or None."""
        config = self.config
        if more:
            config = copy.deepcopy(config)
            for path, step in _packing(config, self.split).items():
                step['meta_keys'] = (*self._stated(step), *more[path])
        try:
            with undisturbed(config):
                self.metrics = self._evaluate(config, side)
        except StepError as failed:
            return failed
        return None


def why_not_evaluated(config: Config, split: str) -> str:
    """Why an evaluation cannot be tried without its loop; empty if it can."""
    loop = kind_of(config.get(f'{split}_cfg') or {})
    if loop not in ('', 'ValLoop', 'TestLoop'):
        return f'{loop} evaluates in its own way'
    hooks = map(kind_of, config.get('custom_hooks') or ())
    prepares = [name for name in hooks if name.startswith('PrepareProto')]
    return f'{prepares[0]} prepares the model' if prepares else ''


def with_tta_pipeline(config: Config) -> Config:
    """A copy of a config whose test data goes through the pipeline of ``ptnt test --tta``."""
    config = copy.deepcopy(config)
    for data_set in data_sets(config, 'test'):
        data_set.settings['pipeline'] = config.tta_pipeline
    return config


def _size(sample: dict) -> tuple[int, ...]:
    image = sample.get('inputs')
    return tuple(image.shape) if isinstance(image, Tensor) else ()


def _packing(config: Config, split: str) -> dict[str, ConfigDict]:
    """The steps of a split's pipelines that choose meta keys, by their paths."""
    where = f'{split}_dataloader.dataset'
    inside = dicts_within(config[f'{split}_dataloader'].dataset, where)
    return {path: step for path, step in inside if kind_of(step).startswith('Pack')}


def _default_keys(step: ConfigDict, scope: str) -> tuple[str, ...]:
    for cls in classes_named(step.get('type'), step.get('_scope_', scope)):
        parameter = arguments_of(cls).parameters.get('meta_keys')
        if parameter is not None:
            return tuple(parameter.default)
    return ()


def _known_keys(scope: str, step: ConfigDict) -> dict[str, None]:
    """The meta keys that may be read, without duplicates."""
    return dict.fromkeys((*_META_KEYS, *_default_keys(step, scope)))
