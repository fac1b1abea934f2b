"""Evaluators: known to mmseg, and measuring what a segmentation is judged by."""

from collections.abc import Iterator, Mapping

from mmengine.config import Config
from mmengine.registry import METRICS

from ptnt_mm.check.segmentation.data import SegmentationData
from ptnt_mm.engine.config import kind_of
from ptnt_mm.engine.data_files import data_sets, evaluators
from ptnt_mm.utils.errors import unknown_name
from ptnt_mm.utils.findings import Finding, error, sound, warning
from ptnt_mm.utils.text import some

_METRICS = ('mIoU', 'mDice', 'mFscore')
"""What mmseg's IoUMetric can measure."""


def check_evaluation(
    data: list[SegmentationData], config: Config, splits: tuple[str, ...]
) -> Iterator[Finding]:
    """Look at the evaluators of the splits."""
    for split in splits:
        if split == 'train' or not list(data_sets(config, split)):
            continue
        found = evaluators(config, split)
        faults = [fault for one in found for fault in _faults(split, one)]
        of_split = [one for one in data if split in one.splits]
        if any(kind_of(one) == 'IoUMetric' for one in found):
            faults += _without_names(split, of_split)
        elif not faults and (not found or any(one.has_masks for one in of_split)):
            faults = [_no_iou(split, found)]
        names = some(map(kind_of, found))
        yield from faults or [sound(split, f'measured by {names}')]


def _faults(split: str, evaluator: Mapping) -> Iterator[Finding]:
    """What mmseg does not know of an evaluator's settings."""
    kind = evaluator.get('type')
    with METRICS.switch_scope_and_registry('mmseg') as registry:
        if isinstance(kind, str) and registry.get(kind) is None:
            what = unknown_name("evaluator's type", kind, sorted(registry.module_dict))
            yield error(split, what, "write dict(type='IoUMetric', iou_metrics=['mIoU'])")
    stated = evaluator.get('iou_metrics', 'mIoU')
    metrics = [stated] if isinstance(stated, str) else list(stated)
    unknown = [metric for metric in metrics if metric not in _METRICS]
    if kind_of(evaluator) == 'IoUMetric' and unknown:
        yield error(
            split,
            unknown_name('iou_metrics', unknown[0], _METRICS),
            'mmseg says so only when all images are evaluated',
        )


def _without_names(split: str, data: list[SegmentationData]) -> Iterator[Finding]:
    """Data sets of which mmseg has read all, and that name no class."""
    if any(one.pairs and 'classes' not in one.built.metainfo for one in data):
        what = 'the data set names no class, and IoUMetric counts by names'
        yield error(split, what, "write metainfo=dict(classes=('name', ...))")


def _no_iou(split: str, found: list[Mapping]) -> Finding:
    which = f'measured by {some(map(kind_of, found))}' if found else 'there is no evaluator'
    advice = "IoUMetric measures the mIoU: dict(type='IoUMetric', iou_metrics=['mIoU'])"
    if not found:
        return error(split, which, advice)
    return warning(split, f'{which}, not by IoUMetric', advice)
