"""COCO's evaluation of a file of detections: its twelve numbers, AP per class, and curves."""

import contextlib
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.frames import one_line
from ptnt_mm.workbench.data.coco import read_json
from ptnt_mm.workbench.engine.class_scores import class_ap, known_score
from ptnt_mm.workbench.engine.coco_evaluation import FullCocoEval

LIMIT = 100
"""COCO's limit of detections of a class in an image."""

_METRICS = {
    'AP': (slice(None), 0),
    'AP50': (0, 0),
    'AP75': (5, 0),
    'small': (slice(None), 1),
    'medium': (slice(None), 2),
    'large': (slice(None), 3),
}
"""Columns of a class, with indices into COCO's ten IoUs from 0.50 to 0.95 and four sizes."""


@dataclass(frozen=True)
class CocoScores:
    """A completed evaluation of pycocotools, and class names by their ids.

    The names are in the order of ``evaluation.params.catIds``.
    """

    evaluation: COCOeval
    classes: dict[int, str]

    @property
    def kind(self) -> str:
        """The kind of results: 'bbox' or 'segm'."""
        return self.evaluation.params.iouType

    @property
    def twelve(self) -> dict[str, float | None]:
        """COCO's twelve numbers in [0, 1]; None where there are no such objects."""
        names = (
            *('AP', 'AP50', 'AP75', 'AP small', 'AP medium', 'AP large'),
            *(f'AR, {limit:,} per image' for limit in self.evaluation.params.maxDets),
            *('AR small', 'AR medium', 'AR large'),
        )
        return dict(zip(names, map(known_score, self.evaluation.stats), strict=True))

    def of_classes(self) -> Iterator[dict[str, object]]:
        """For each class its name, its number of objects, and its AP: overall and by size."""
        truth = self.evaluation.cocoGt
        for index, (category, name) in enumerate(self.classes.items()):
            objects = len(truth.getAnnIds(catIds=[category], iscrowd=False))
            scores = {
                metric: class_ap(self.evaluation, index, ious, size)
                for metric, (ious, size) in _METRICS.items()
            }
            yield dict(Class=name, objects=objects, **scores)

    def curves(self) -> Iterator[dict[str, object]]:
        """Points of precision over recall at an IoU of 0.50, for all classes together and for each.

        Every second of COCO's 101 recalls is enough to draw.
        """
        precision = self.evaluation.eval['precision'][0, ::2, :, 0, -1]
        known = precision[:, precision[0] >= 0]
        curves = dict(zip(self.classes.values(), precision.T, strict=True))
        if known.size:
            curves = {'all': known.mean(axis=1), **curves}
        for name, values in curves.items():
            for recall, value in zip(self.evaluation.params.recThrs[::2], values, strict=True):
                if value >= 0:
                    yield dict(Class=name, recall=round(recall, 2), precision=round(value, 4))


def read_annotations(file: Path) -> COCO:
    """Read ground truth, or raise a UserError."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return COCO(str(file))
    except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
        raise UserError(f'{file} cannot be read as COCO annotations: {one_line(error)}') from error


def score_results(
    truth: COCO, file: Path, kind: str, names: Collection[str] = (), limit: int | None = LIMIT
) -> CocoScores:
    """Compare detections with ground truth as COCO does.

    Args:
        truth: The ground truth; changed in place if masks are compared.
        file: Output of mmdet's CocoMetric: JSON in COCO's format of results.
        kind: 'bbox' or 'segm'.
        names: The classes to evaluate; empty for all in the annotation file.
        limit: How many detections of a class in an image count; None for all, from COCO's 100.

    Raises:
        UserError: if the file has a different format or other images, or if there are no objects.
    """
    categories = truth.loadCats(truth.getCatIds(catNms=list(names)))
    ids = [category['id'] for category in categories]
    # For pycocotools, an empty list of ids means all.
    if not ids or not truth.getAnnIds(catIds=ids, iscrowd=False):
        raise UserError(f'the ground truth has no objects of {", ".join(names) or "any class"}')
    with contextlib.redirect_stdout(io.StringIO()):
        found = _read_results(truth, file, kind)
        evaluation = FullCocoEval(truth, found, kind)
        evaluation.params.catIds = ids
        if limit is None:
            limit = max([LIMIT, *map(len, found.imgToAnns.values())])
        evaluation.params.maxDets[-1] = limit
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return CocoScores(evaluation, {entry['id']: entry['name'] for entry in categories})


def _read_results(truth: COCO, file: Path, kind: str) -> COCO:
    results = read_json(file)
    if results == []:
        # pycocotools cannot read a list without entries.
        nothing = COCO()
        nothing.dataset = dict(truth.dataset, annotations=[])
        nothing.createIndex()
        return nothing
    try:
        if kind == 'segm':
            # As mmdet does: with a box, pycocotools would use its area as that of the mask.
            results = [{k: v for k, v in entry.items() if k != 'bbox'} for entry in results]
        return truth.loadRes(results)
    except (AssertionError, AttributeError, KeyError, OSError, TypeError) as error:
        raise UserError(
            f'{file} does not contain results for these images: {one_line(error)}. Delete it to '
            'recreate it'
        ) from error
