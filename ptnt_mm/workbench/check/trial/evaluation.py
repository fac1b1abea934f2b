"""Evaluation of one image: its pipeline, the model with its post-processing, the metrics."""

import copy
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import torch
from mmengine.config import ConfigDict
from mmengine.evaluator import BaseMetric
from mmengine.hooks import CheckpointHook
from mmengine.registry import METRICS, MODELS
from mmengine.structures import BaseDataElement
from torch import Tensor, nn

from ptnt_mm.utils.findings import Finding, error, note, ok, warning
from ptnt_mm.utils.frames import failing_line, failing_part
from ptnt_mm.utils.text import first_few, suggest
from ptnt_mm.workbench.check.coco_annotations import DetectionDataset, index
from ptnt_mm.workbench.check.data_sets import LoadedDataset, evenly_spread
from ptnt_mm.workbench.check.trial.failed_steps import StepFailure, at, describe
from ptnt_mm.workbench.check.trial.setup import collate_of, load_samples, shrunk, sides, undisturbed
from ptnt_mm.workbench.config.registered import arguments_of, classes_named
from ptnt_mm.workbench.config.settings import dicts_within, short_name, type_name
from ptnt_mm.workbench.config.view import ConfigView, Split, local_path

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

    @property
    def _split(self) -> Split:
        return self.view.split(self.split)

    def check(self) -> Iterator[Finding]:
        """Evaluate; an error contains the wrong setting."""
        for side in sides(self.view):
            failed = None
            try:
                with undisturbed(self.view.scope):
                    self.metrics = self._evaluate(side)
            except StepFailure as err:
                failed = err
            # Some models accept only the original size.
            if failed is None or not failed.where.startswith('model'):
                break
        if failed is not None:
            lacking = list(self._missing_meta_keys(failed))
            advice = 'the first evaluation would stop'
            yield from lacking or [error(*describe(failed, self.view), advice)]
            return
        if names := left_out(self._split):
            yield note(self.split, f'{", ".join(names)} was not tried')
            self.metrics = None
        what = 'evaluated with test-time augmentation' if self.with_tta else 'evaluated'
        named = f': {", ".join(self.metrics)}' if self.metrics else ''
        yield ok(self.split, f'an image is {what}{named}')

    def _evaluate(self, side: int) -> dict[str, Any]:
        """The metrics of an image by name; raises a StepFailure that names a part of the config."""
        split, name = self._split, self.split
        collate = collate_of(split)
        with at(f'{name}_dataloader.dataset'):
            metainfo, samples = load_samples(split, self.data, self._chosen)
        with at(f'{name}_dataloader'):
            batch = collate(samples)
            if len(set(map(_size, samples))) == 1:
                batch = collate([shrunk(sample, side) for sample in samples])
        with at('tta_model' if self.with_tta else 'model'), torch.no_grad():
            model = self.model
            if self.with_tta:
                model = MODELS.build(dict(self.view.config.tta_model, module=model))
            model.eval()
            predicted = model.test_step(batch)
        with at(f'{name}_evaluator'):
            return measure_one_image(split, metainfo, self.data, batch, predicted)

    def _chosen(self, data_set: Any) -> list[dict]:
        if self.with_tta or self._split.batch_size == 1:
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
            for path, step in _packing(self._split).items()
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
    if loop not in ('', 'ValLoop', 'TestLoop', 'TiledValLoop', 'TiledTestLoop'):
        return f'{loop} evaluates in its own way'
    hooks = map(short_name, view.custom_hooks)
    prepares = [name for name in hooks if name.startswith('PrepareProto')]
    return f'{prepares[0]} prepares the model' if prepares else ''


def _size(sample: dict) -> tuple[int, ...]:
    image = sample.get('inputs')
    return tuple(image.shape) if isinstance(image, Tensor) else ()


def _packing(split: Split) -> dict[str, ConfigDict]:
    """The steps of a split's pipelines that choose meta keys, by their paths."""
    inside = dicts_within(split.dataset, f'{split.name}_dataloader.dataset')
    return {path: step for path, step in inside if short_name(step).startswith('Pack')}


def _default_keys(step: ConfigDict, scope: str) -> tuple[str, ...]:
    for cls in classes_named(step.get('type'), step.get('_scope_', scope)):
        parameter = arguments_of(cls).parameters.get('meta_keys')
        if parameter is not None:
            return tuple(parameter.default)
    return ()


# They write files, download something, or need more than one image.
_NOT_TRIED = (
    'ANLS', 'CityScapesMetric', 'CityscapesMetric', 'CocoPanopticMetric', 'COCOCaption',
    'COCOCaptionMetric', 'CrowdHumanMetric', 'DumpDetResults', 'DumpMaps', 'DumpODVGResults',
    'DumpProposals', 'DumpResults', 'DumpTiledResults', 'Flickr30kMetric', 'GQAAcc', 'LVISMetric',
    'LVISFixedAPMetric',
    'MOTChallengeMetric', 'NocapsSave', 'RefExpMetric', 'ReIDMetrics', 'RetrievalRecall',
    'RetrievalAveragePrecision', 'ScienceQAMetric', 'VQAAcc', 'VQAMCTest', 'YouTubeVISMetric',
)  # fmt: skip
_FILES = ('outfile_prefix', 'output_dir', 'out_dir', 'out_file_path')


def left_out(split: Split) -> list[str]:
    """The kinds of evaluators that are not tried."""
    if (separate := split.separate_evaluator) is not None:
        return [type_name(separate)]
    return [type_name(evaluator) for evaluator in split.evaluators if not _is_tried(evaluator)]


def measure_one_image(
    split: Split,
    metainfo: dict,
    data: Sequence[LoadedDataset],
    batch: Any,
    predicted: Sequence[BaseDataElement],
) -> dict[str, Any]:
    """Run the evaluators on predictions, and return the metrics by name; no file is left.

    Args:
        split: Its evaluators are built.
        metainfo: The metainfo of the data set.
        data: The data sets that were already read.
        batch: The samples, collated.
        predicted: Predictions of the model. If they are empty, a made-up object is added, because
            some metrics stop early otherwise.
    """
    found: dict[str, Any] = {}
    if split.separate_evaluator is not None:
        return found
    samples = [_with_an_object(sample).to_dict() for sample in predicted]
    for settings in filter(_is_tried, split.evaluators):
        metric = _build(settings, split.name, data, {sample.get('img_id') for sample in samples})
        metric.dataset_meta = metainfo
        metric.process(batch, copy.deepcopy(samples))
        prefix = f'{metric.prefix}/' if metric.prefix else ''
        for name, value in metric.compute_metrics(metric.results).items():
            if prefix + name in found:
                raise ValueError(
                    f'two evaluators measure {prefix + name}: set a prefix for one of them'
                )
            found[prefix + name] = value
    return found


def _is_tried(settings: dict) -> bool:
    return type_name(settings) not in _NOT_TRIED and not settings.get('format_only')


def _build(settings: dict, split: str, data: Sequence[LoadedDataset], ids: set) -> BaseMetric:
    settings = {key: value for key, value in settings.items() if key not in _FILES}
    is_coco = type_name(settings) in ('CocoMetric', 'DenseCocoMetric')
    if is_coco and local_path(settings.get('ann_file')) is not None:
        read = [
            dataset
            for dataset in data
            if isinstance(dataset, DetectionDataset)
            and dataset.sample_entries
            and split in dataset.pipelines
        ]
        if read:
            metric = METRICS.build(dict(settings, ann_file=None))
            metric._coco_api = _annotations_of(ids, read, settings.get('sort_categories'))
            return metric
    return METRICS.build(settings)


def _annotations_of(ids: set, data: Sequence[DetectionDataset], is_sorted: bool | None) -> Any:
    """The annotations of some images, as pycocotools has them."""
    first = data[0].file
    images, annotations = {}, []
    for file in (dataset.file for dataset in data):
        images |= {key: image for key, image in file.images.items() if key in ids}
        annotations += [entry for entry in file.annotations if entry['image_id'] in ids]
    if len(data) > 1:
        # Their ids may be the same in several files.
        annotations = [dict(entry, id=i) for i, entry in enumerate(annotations, start=1)]
    categories = first.categories
    if is_sorted:
        categories = sorted(categories, key=lambda category: category['id'])
    few = replace(first, images=images, annotations=annotations, categories=categories)
    return index(type(data[0].built).COCOAPI, few, str(first.path))


def _with_an_object(predicted: BaseDataElement) -> BaseDataElement:
    instances = predicted.get('pred_instances')
    if instances is not None and 'bboxes' in instances and not len(instances.bboxes):
        made_up = {
            key: value.new_zeros((1, *value.shape[1:]))
            for key, value in instances.items()
            if isinstance(value, Tensor)
        }
        with suppress(RuntimeError):  # boxes of other dimensions
            made_up['bboxes'][:] = made_up['bboxes'].new_tensor([0, 0, 8, 8])
        predicted.pred_instances = type(instances)(**made_up)
    return predicted


def check_monitored(view: ConfigView, measured: Collection[str]) -> Iterator[Finding]:
    """Compare the names of watched metrics with those that evaluators measure."""
    for where, name, rule in _watched(view):
        if name not in measured:
            # The most common mistake is to omit the prefix.
            same = [other for other in measured if other.rpartition('/')[2] == name]
            suggestion = f'did you mean {same[0]!r}?' if same else suggest(name, measured)
            suggestion = suggestion or 'no metric has a similar name'
            what = f'is {name!r}, which is not measured: {suggestion}'
            yield error(where, what, f'write one of {first_few(measured, 20)}')
        elif rule == 'less' and _is_better_if_greater(name):
            where = f'{where.rpartition(".")[0]}.rule'
            yield warning(where, f"is 'less', but higher is better for {name}", "write 'greater'")


def _watched(view: ConfigView) -> Iterator[tuple[str, str, str | None]]:
    """The path of each setting with a metric's name, the name, and the comparison rule."""
    hook = view.default_hook('checkpoint')
    best, rules = hook.get('save_best') or (), hook.get('rule')
    best = [best] if isinstance(best, str) else best
    rules = rules if isinstance(rules, (list, tuple)) else [rules] * len(best)
    for name, rule in zip(best, rules, strict=False):
        # With 'auto' it is the first metric.
        if name != 'auto':
            yield 'default_hooks.checkpoint.save_best', name, rule
    for i, settings in enumerate(view.custom_hooks):
        if type_name(settings) == 'EarlyStoppingHook' and 'monitor' in settings:
            yield f'custom_hooks[{i}].monitor', settings['monitor'], settings.get('rule')
    for i, settings in enumerate(view.schedulers):
        if type_name(settings).startswith('ReduceOnPlateau') and 'monitor' in settings:
            yield f'param_scheduler[{i}].monitor', settings['monitor'], settings.get('rule')


def _is_better_if_greater(name: str) -> bool:
    """Whether MMEngine would prefer larger values of a metric of this name."""
    short = name.rpartition('/')[2].lower()
    return any(key.lower() in short for key in CheckpointHook._default_greater_keys)
