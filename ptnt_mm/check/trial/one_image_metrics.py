"""A config's evaluators, on the predictions for one image."""

import copy
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mmengine.evaluator import BaseMetric
from mmengine.registry import METRICS
from mmengine.structures import BaseDataElement
from torch import Tensor

from ptnt_mm.check.coco_annotations import DetectionDataset, index
from ptnt_mm.check.data_sets import LoadedDataset
from ptnt_mm.config.settings import type_name
from ptnt_mm.config.view import ConfigView, local_path

# They write files, download something, or need more than one image.
_NOT_TRIED = (
    'ANLS', 'CityScapesMetric', 'CityscapesMetric', 'CocoPanopticMetric', 'COCOCaption',
    'COCOCaptionMetric', 'CrowdHumanMetric', 'DumpDetResults', 'DumpMaps', 'DumpODVGResults',
    'DumpProposals', 'DumpResults', 'Flickr30kMetric', 'GQAAcc', 'LVISMetric', 'LVISFixedAPMetric',
    'MOTChallengeMetric', 'NocapsSave', 'RefExpMetric', 'ReIDMetrics', 'RetrievalRecall',
    'RetrievalAveragePrecision', 'ScienceQAMetric', 'VQAAcc', 'VQAMCTest', 'YouTubeVISMetric',
)  # fmt: skip
_FILES = ('outfile_prefix', 'output_dir', 'out_dir', 'out_file_path')


def left_out(view: ConfigView, split: str) -> list[str]:
    """The kinds of evaluators that are not tried."""
    if (separate := view.split(split).separate_evaluator) is not None:
        return [type_name(separate)]
    return [
        type_name(evaluator)
        for evaluator in view.split(split).evaluators
        if not _is_tried(evaluator)
    ]


def measure_one_image(
    view: ConfigView,
    split: str,
    metainfo: dict,
    data: Sequence[LoadedDataset],
    batch: Any,
    predicted: Sequence[BaseDataElement],
) -> dict[str, Any]:
    """Run the evaluators on predictions, and return the metrics by name; no file is left.

    Args:
        view: The config, whose evaluators are built.
        split: 'val' or 'test'.
        metainfo: The metainfo of the data set.
        data: The data sets that were already read.
        batch: The samples, collated.
        predicted: Predictions of the model. If they are empty, a made-up object is added, because
            some metrics stop early otherwise.
    """
    found: dict[str, Any] = {}
    if view.split(split).separate_evaluator is not None:
        return found
    samples = [_with_an_object(sample).to_dict() for sample in predicted]
    for settings in filter(_is_tried, view.split(split).evaluators):
        metric = _build(settings, split, data, {sample.get('img_id') for sample in samples})
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
    if type_name(settings) == 'CocoMetric' and local_path(settings.get('ann_file')) is not None:
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
