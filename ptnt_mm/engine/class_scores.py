"""The scores of each class in an evaluation, as the hosts' metrics compute them.

mmdet and mmseg write them only into the log, if at all.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Self

import numpy as np

Rows = list[dict[str, object]]
"""For each class its name under 'Class', and then numbers of images and objects, and scores."""

COCO_METRICS = {
    'AP': (slice(None), 0),
    'AP50': (0, 0),
    'AP75': (5, 0),
    'small': (slice(None), 1),
    'medium': (slice(None), 2),
    'large': (slice(None), 3),
}
"""Scores of a class, with indices into COCO's ten IoUs from 0.50 to 0.95 and four sizes."""


def coco_classes(evaluation: Any, names: Mapping[int, str]) -> Iterator[dict[str, object]]:
    """For each class its name, its number of objects, and its AP: overall and by size.

    Args:
        evaluation: A completed ``COCOeval`` of pycocotools.
        names: Names of the classes by their ids, in the order of ``params.catIds``.
    """
    truth, precision = evaluation.cocoGt, evaluation.eval['precision'][..., -1]
    for index, (category, name) in enumerate(names.items()):
        objects = len(truth.getAnnIds(catIds=[category], iscrowd=False))
        places = {metric: precision[iou, :, index, a] for metric, (iou, a) in COCO_METRICS.items()}
        # COCO's -1 means that there are no objects.
        scores = {metric: known_score(values.mean()) for metric, values in places.items()}
        yield dict(Class=name, objects=objects, **scores)


def known_score(value: float) -> float | None:
    """Convert COCO's -1, for no objects, to None."""
    return None if value < 0 else float(value)


class ClassScores:
    """A context that keeps the scores by class of an evaluation in ``rows``.

    It listens to pycocotools' ``COCOeval`` and mmseg's ``IoUMetric``, which a metric of the hosts
    calls; of boxes and masks, masks count. After other metrics, ``rows`` is empty.
    """

    def __init__(self):
        self.rows: Rows = []
        self._classes: Sequence[str] = ()
        self._replaced: list[tuple[type, str, Any]] = []

    def begin(self, evaluator: Any) -> None:
        """Forget the evaluation before; MMEngine's evaluator knows the names of the classes."""
        self.rows = []
        self._classes = (evaluator.dataset_meta or {}).get('classes', ())

    def __enter__(self) -> Self:
        if coco := sys.modules.get('pycocotools.cocoeval'):
            self._listen(coco.COCOeval, 'accumulate', self._of_coco)
        if mmseg := sys.modules.get('mmseg.evaluation'):
            self._listen(mmseg.IoUMetric, 'total_area_to_metrics', self._of_areas)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for owner, name, original in self._replaced:
            setattr(owner, name, original)
        self._replaced.clear()

    def _listen(self, owner: type, name: str, note: Any) -> None:
        original = vars(owner)[name]
        call = original.__func__ if isinstance(original, classmethod | staticmethod) else original

        @wraps(call)
        def listening(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            note(args, result)
            return result

        self._replaced.append((owner, name, original))
        kind = type(original) if isinstance(original, classmethod | staticmethod) else None
        setattr(owner, name, kind(listening) if kind else listening)

    def _of_coco(self, args: tuple, _: Any) -> None:
        evaluation = args[0]
        truth, ids = evaluation.cocoGt, evaluation.params.catIds
        kind = evaluation.params.iouType
        if kind not in ('bbox', 'segm') or (kind == 'bbox' and self.rows):
            return
        names = {category: truth.cats[category]['name'] for category in ids}
        self.rows = [
            dict(
                Class=row['Class'],
                images=len(truth.getImgIds(catIds=[category])),
                objects=row['objects'],
                AP=row['AP'],
                AP50=row['AP50'],
            )
            for category, row in zip(ids, coco_classes(evaluation, names), strict=True)
        ]

    def _of_areas(self, _: tuple, result: Mapping[str, Any]) -> None:
        scores = {name: values for name, values in result.items() if np.ndim(values) == 1}
        self.rows = [
            {'Class': name, **{score: float(values[i]) for score, values in scores.items()}}
            for i, name in enumerate(self._classes)
        ]
