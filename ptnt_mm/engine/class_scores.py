"""The scores of each class in an evaluation, as the hosts' metrics compute them.

mmdet and mmseg write them only into the log, if at all.
"""

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from typing import Any, Self

import numpy as np

Rows = list[dict[str, object]]
"""For each class its name under 'class', and then numbers of images and objects, and scores."""


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
        self._classes = (getattr(evaluator, 'dataset_meta', None) or {}).get('classes', ())

    def __enter__(self) -> Self:
        if coco := sys.modules.get('pycocotools.cocoeval'):
            self._listen(coco.COCOeval, 'accumulate', self._note_coco)
        if mmseg := sys.modules.get('mmseg.evaluation'):
            self._listen(mmseg.IoUMetric, 'total_area_to_metrics', self._note_areas)
        return self

    def __exit__(self, *error: object) -> None:
        for owner, name, original in self._replaced:
            setattr(owner, name, original)
        self._replaced.clear()

    def _listen(self, owner: type, name: str, note: Callable[[tuple, Any], None]) -> None:
        original = vars(owner)[name]
        wrapper = type(original) if isinstance(original, classmethod | staticmethod) else None
        call = original.__func__ if wrapper else original

        @wraps(call)
        def listening(*args: Any, **kwargs: Any) -> Any:
            result = call(*args, **kwargs)
            # The table is no reason to stop an evaluation, whatever its settings are.
            with suppress(Exception):
                note(args, result)
            return result

        self._replaced.append((owner, name, original))
        setattr(owner, name, wrapper(listening) if wrapper else listening)

    def _note_coco(self, args: tuple, _: Any) -> None:
        evaluation = args[0]
        truth, params = evaluation.cocoGt, evaluation.params
        if not params.useCats or (params.iouType == 'bbox' and self.rows):
            return
        half = np.flatnonzero(np.isclose(params.iouThrs, 0.5))
        objects = [item for item in truth.anns.values() if not item.get('iscrowd')]
        count = Counter(item['category_id'] for item in objects)
        images = Counter(pair[1] for pair in {(i['image_id'], i['category_id']) for i in objects})
        self.rows = [
            {
                'class': truth.cats[category]['name'],
                'images': images[category],
                'objects': count[category],
                'AP': class_ap(evaluation, index, slice(None)),
                **({'AP50': class_ap(evaluation, index, int(half[0]))} if half.size else {}),
            }
            for index, category in enumerate(params.catIds)
        ]

    def _note_areas(self, _: tuple, result: Mapping[str, Any]) -> None:
        scores = {name: values for name, values in result.items() if np.ndim(values) == 1}
        self.rows = [
            {'class': name, **{score: float(values[i]) for score, values in scores.items()}}
            for i, name in enumerate(self._classes)
        ]
