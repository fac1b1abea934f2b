"""Evaluators: registered in the host, and consistent with their data sets."""

from collections.abc import Iterator

from ptnt_mm.check.coco_annotations import DetectionDataset
from ptnt_mm.check.data_sets import LoadedDataset
from ptnt_mm.check.evaluated_files import check_evaluated_files
from ptnt_mm.check.image_labels import number_of_classes
from ptnt_mm.check.mask_lists import has_masks
from ptnt_mm.config.settings import type_name
from ptnt_mm.config.view import ConfigView
from ptnt_mm.utils.findings import Finding, Severity, error, ok, report_wrong, warning
from ptnt_mm.utils.text import first_few, unknown_name

_METRICS = ('mIoU', 'mDice', 'mFscore')  # the metrics of mmseg's IoUMetric


def check_evaluators_of_objects(
    data: list[DetectionDataset], view: ConfigView
) -> Iterator[Finding]:
    """Compare the annotations of a detector's evaluators with those of its data sets."""
    for split in ('val', 'test'):
        yield from check_evaluated_files(data, view, split)
    for dataset in data:
        if dataset.file is not None and not dataset.trains:
            yield from _for_pycocotools(dataset)


def check_evaluators_of_masks(
    data: list[LoadedDataset], view: ConfigView, splits: tuple[str, ...]
) -> Iterator[Finding]:
    """Check the evaluators of a segmenter's splits."""
    for split, found in _of_splits(view, splits):
        of_split = [dataset for dataset in data if split in dataset.pipelines]
        ious = [one for one in found if type_name(one) == 'IoUMetric']
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
            what = f'measured by {first_few(map(type_name, found))}, not by IoUMetric'
            faults.append(warning(split, what, advice))
        # IoUMetric counts by names, which a class may have read with its list.
        if ious and any(one.images and 'classes' not in one.built.metainfo for one in of_split):
            what = 'the data set has no class names, which IoUMetric needs'
            faults.append(error(split, what, "write metainfo=dict(classes=('name', ...))"))
        yield from faults or [ok(split, f'measured by {first_few(map(type_name, found))}')]


def check_evaluators_of_labels(view: ConfigView, splits: tuple[str, ...]) -> Iterator[Finding]:
    """Check the evaluators of a classifier's splits."""
    number = number_of_classes(view)
    for split, found in _of_splits(view, splits):
        topk = [one.get('topk') or 1 for one in found]
        best = max((max(k) if isinstance(k, (list, tuple)) else k for k in topk), default=1)
        if not found:
            yield error(split, 'there is no evaluator', "write dict(type='Accuracy', topk=(1, 5))")
        elif best > number:
            what = f'topk needs the best {best} classes, but the head has {number}'
            yield error(split, what, 'evaluation would fail: write topk=(1,)')
        else:
            yield ok(split, f'measured by {first_few(map(type_name, found))}')


def _of_splits(view: ConfigView, splits: tuple[str, ...]) -> Iterator[tuple[str, list[dict]]]:
    for split in splits:
        if split != 'train' and list(view.split(split).data_sets):
            yield split, view.split(split).evaluators


def _for_pycocotools(data: DetectionDataset) -> Iterator[Finding]:
    """Report annotations that lack what only evaluation needs."""
    entries = data.file.annotations
    without = [f'id {entry["id"]}' for entry in entries if 'iscrowd' not in entry]
    what, advice = 'annotations without iscrowd', 'evaluation fails: write "iscrowd": 0'
    yield from report_wrong(Severity.ERROR, data.name, without, len(entries), what, advice)
    if any(entry['id'] == 0 for entry in entries):
        what = 'one annotation has the id 0, which pycocotools takes for "not found"'
        advice = 'its object never counts as found: number annotations from 1'
        yield warning(data.name, what, advice)
