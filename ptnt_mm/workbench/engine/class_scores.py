"""The scores of each class in an evaluation, as the hosts' metrics compute them.

mmdet and mmseg write them only into the log, if at all. A metric that keeps them is a subclass of
the config's, which :func:`keeping_class_scores` puts in its place.
"""

import logging
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from threading import RLock
from typing import Any

import numpy as np
from mmengine.logging import print_log

from ptnt_mm.registry import METRICS
from ptnt_mm.utils.frames import one_line

Rows = list[dict[str, object]]
"""For each class its name under 'class', and then numbers of images and objects, and scores."""

_replacing = RLock()


def class_ap(evaluation: Any, index: int, ious: int | slice, size: int = 0) -> float | None:
    """AP of a class in [0, 1]; None if it has no objects.

    Args:
        evaluation: A completed ``COCOeval`` of pycocotools.
        index: The place of the class in ``params.catIds``.
        ious: The places of the overlaps in ``params.iouThrs``.
        size: The place of the sizes of objects in ``params.areaRng``; 0 for all.
    """
    return known_score(evaluation.eval['precision'][ious, :, index, size, -1].mean())


def known_score(value: float) -> float | None:
    """Convert COCO's -1, for no objects, to None."""
    return None if value < 0 else float(value)


class KeepsCocoClassScores:
    """mmdet's ``CocoMetric`` with ``class_scores``; of boxes and masks, masks count."""

    class_scores: Rows = []
    evaluation: type | None = None
    """A subclass of ``COCOeval`` to evaluate with; None for the one that mmdet chooses."""

    def compute_metrics(self, results: list) -> dict[str, float]:
        """The scores of all images, by name.

        mmdet keeps no ``COCOeval``, and has no method that creates it: its names in mmdet's module
        are replaced for this call.
        """
        module, evaluations = sys.modules['mmdet.evaluation.metrics.coco_metric'], []
        with _replacing:
            originals = {name: getattr(module, name) for name in ('COCOeval', 'COCOevalMP')}
            for name, original in originals.items():
                setattr(module, name, _recording(self.evaluation or original, evaluations))
            try:
                scores = super().compute_metrics(results)
            finally:
                for name, original in originals.items():
                    setattr(module, name, original)
        by_kind = {done.params.iouType: done for done in evaluations if done.params.useCats}
        evaluation = by_kind.get('segm') or by_kind.get('bbox')
        self.class_scores = _table(partial(coco_rows, evaluation)) if evaluation else []
        return scores


def _recording(create: Callable, created: list) -> Callable:
    """A constructor that also appends what it creates to a list."""

    def create_recorded(*args: Any) -> Any:
        created.append(create(*args))
        return created[-1]

    return create_recorded


class KeepsIoUClassScores:
    """mmseg's ``IoUMetric`` with ``class_scores``."""

    class_scores: Rows = []

    def total_area_to_metrics(self, *args: Any, **kwargs: Any) -> Mapping[str, Any]:
        """The scores by name, of all classes or of each; the arguments are those of mmseg."""
        result = super().total_area_to_metrics(*args, **kwargs)
        scores = {name: values for name, values in result.items() if np.ndim(values) == 1}
        self.class_scores = _table(partial(_iou_rows, self.dataset_meta, scores))
        return result


def _iou_rows(meta: Mapping[str, Any], scores: Mapping[str, np.ndarray]) -> Rows:
    return [
        {'class': name, **{score: float(values[i]) for score, values in scores.items()}}
        for i, name in enumerate(meta['classes'])
    ]


def _table(make: Callable[[], Rows]) -> Rows:
    """The rows that a function makes; a warning if it fails, which stops no evaluation."""
    try:
        return make()
    except Exception as error:  # subclasses of the hosts' metrics may keep anything
        why = one_line(error, named=True)
        print_log(f'there are no scores by class: {why}', 'current', logging.WARNING)
        return []


def coco_rows(evaluation: Any) -> Rows:
    """The rows of a completed ``COCOeval``."""
    truth, params = evaluation.cocoGt, evaluation.params
    half = np.flatnonzero(np.isclose(params.iouThrs, 0.5))
    objects = [item for item in truth.anns.values() if not item.get('iscrowd')]
    count = Counter(item['category_id'] for item in objects)
    images = Counter(pair[1] for pair in {(i['image_id'], i['category_id']) for i in objects})
    return [
        {
            'class': truth.cats[category]['name'],
            'images': images[category],
            'objects': count[category],
            'AP': class_ap(evaluation, index, slice(None)),
            **({'AP50': class_ap(evaluation, index, int(half[0]))} if half.size else {}),
        }
        for index, category in enumerate(params.catIds)
    ]


def keeping_class_scores(settings: object) -> Any:
    """Settings of an evaluator or of metrics, whose metrics keep the scores of each class."""
    if isinstance(settings, (list, tuple)):
        return [keeping_class_scores(part) for part in settings]
    if not isinstance(settings, Mapping):
        return settings
    if 'metrics' in settings:
        return {**settings, 'metrics': keeping_class_scores(settings['metrics'])}
    cls = settings.get('type')
    if isinstance(cls, str):
        with METRICS.switch_scope_and_registry(settings.get('_scope_')) as registry:
            cls = registry.get(cls)
    if not isinstance(cls, type) or issubclass(cls, (KeepsCocoClassScores, KeepsIoUClassScores)):
        return settings
    for scores, host, name in (
        (KeepsCocoClassScores, 'mmdet', 'CocoMetric'),
        (KeepsIoUClassScores, 'mmseg', 'IoUMetric'),
    ):
        if issubclass(cls, getattr(sys.modules.get(f'{host}.evaluation'), name, ())):
            # Messages show the name of the config's class.
            named = type(cls.__name__, (scores, cls), {'__module__': cls.__module__})
            return {**settings, 'type': named}
    return settings


def class_scores(evaluator: Any) -> Rows:
    """The rows of an evaluator's first metric that keeps some; empty without one."""
    rows = (getattr(metric, 'class_scores', []) for metric in getattr(evaluator, 'metrics', []))
    return next(filter(None, rows), [])
