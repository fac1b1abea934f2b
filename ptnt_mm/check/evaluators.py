"""Evaluators: registered in the host, and consistent with their data sets."""

from collections.abc import Iterator
from pathlib import Path

from mmengine.config import Config

from ptnt_mm.check.coco_annotations import DetectionData
from ptnt_mm.check.data_sets import Data
from ptnt_mm.check.image_labels import number_of_classes
from ptnt_mm.check.mask_lists import has_masks
from ptnt_mm.engine.data_files import data_sets, evaluators, local_path
from ptnt_mm.engine.settings import kind_of
from ptnt_mm.utils.findings import Finding, Severity, error, ok, report_wrong, warning
from ptnt_mm.utils.text import first_few, unknown_name

_METRICS = ('mIoU', 'mDice', 'mFscore')  # the metrics of mmseg's IoUMetric


def check_evaluators_of_objects(data: list[DetectionData], config: Config) -> Iterator[Finding]:
    """Compare the annotations of a detector's evaluators with those of its data sets."""
    for split in ('val', 'test'):
        of_split = [
            dataset for dataset in data if split in dataset.pipelines and dataset.file is not None
        ]
        metrics = [
            evaluator
            for evaluator in evaluators(config, split)
            if kind_of(evaluator).startswith('Coco')
        ]
        paths = [local_path(metric.get('ann_file')) for metric in metrics]
        if len(of_split) == 1 and any(paths):
            found = [fault for path in paths if path for fault in _files(split, of_split[0], path)]
            yield from found or [ok(split, f'measured on {of_split[0].file.path}')]
    for dataset in data:
        if dataset.file is not None and not dataset.trains:
            yield from _for_pycocotools(dataset)


def check_evaluators_of_masks(
    data: list[Data], config: Config, splits: tuple[str, ...]
) -> Iterator[Finding]:
    """Check the evaluators of a segmenter's splits."""
    for split, found in _of_splits(config, splits):
        of_split = [dataset for dataset in data if split in dataset.pipelines]
        ious = [one for one in found if kind_of(one) == 'IoUMetric']
        faults = []
        for stated in (one.get('iou_metrics', 'mIoU') for one in ious):
            metrics = [stated] if isinstance(stated, str) else stated
            for unknown in set(metrics).difference(_METRICS):
                what = unknown_name('iou_metrics', unknown, _METRICS)
                advice = 'mmseg reports this only after all images are evaluated'
                faults.append(error(split, what, advice))
        advice = "IoUMetric measures the mIoU: dict(type='IoUMetric', iou_metrics=['mIoU'])"
        if not found:
            faults.append(error(split, 'there is no evaluator', advice))
        elif not ious and any(map(has_masks, of_split)):
            what = f'measured by {first_few(map(kind_of, found))}, not by IoUMetric'
            faults.append(warning(split, what, advice))
        # IoUMetric counts by names, which a class may have read with its list.
        if ious and any(one.images and 'classes' not in one.built.metainfo for one in of_split):
            what = 'the data set has no class names, which IoUMetric needs'
            faults.append(error(split, what, "write metainfo=dict(classes=('name', ...))"))
        yield from faults or [ok(split, f'measured by {first_few(map(kind_of, found))}')]


def check_evaluators_of_labels(config: Config, splits: tuple[str, ...]) -> Iterator[Finding]:
    """Check the evaluators of a classifier's splits."""
    number = number_of_classes(config)
    for split, found in _of_splits(config, splits):
        topk = [one.get('topk') or 1 for one in found]
        best = max((max(k) if isinstance(k, (list, tuple)) else k for k in topk), default=1)
        if not found:
            yield error(split, 'there is no evaluator', "write dict(type='Accuracy', topk=(1, 5))")
        elif best > number:
            what = f'topk needs the best {best} classes, but the head has {number}'
            yield error(split, what, 'evaluation would fail: write topk=(1,)')
        else:
            yield ok(split, f'measured by {first_few(map(kind_of, found))}')


def _of_splits(config: Config, splits: tuple[str, ...]) -> Iterator[tuple[str, list[dict]]]:
    for split in splits:
        if split != 'train' and list(data_sets(config, split)):
            yield split, evaluators(config, split)


def _files(split: str, data: DetectionData, file: Path) -> Iterator[Finding]:
    if file.resolve() != data.file.path.resolve():
        what = f'{split}_evaluator.ann_file is {file}, the data set reads {data.file.path}'
        advice = 'predictions would be measured against other images: use the same file for both'
        yield error(split, what, advice)
    elif data.built is not None and len(data.used) < data.total:
        what = f'{len(data.used)} of the {data.total} images of {file} are loaded'
        advice = 'the others count as images in which nothing was found: use a file of these only'
        yield warning(split, what, advice)


def _for_pycocotools(data: DetectionData) -> Iterator[Finding]:
    """Report annotations that lack what only evaluation needs."""
    entries = data.file.annotations
    without = [f'id {entry["id"]}' for entry in entries if 'iscrowd' not in entry]
    what, advice = 'annotations without iscrowd', 'evaluation fails: write "iscrowd": 0'
    yield from report_wrong(Severity.ERROR, data.name, without, len(entries), what, advice)
    if any(entry['id'] == 0 for entry in entries):
        what = 'one annotation has the id 0, which pycocotools takes for "not found"'
        advice = 'its object never counts as found: number annotations from 1'
        yield warning(data.name, what, advice)
