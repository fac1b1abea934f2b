"""The errors of a detector, split by kind, and the AP that each kind costs.

Follows "TIDE: A General Toolbox for Identifying Object Detection Errors" (Bolya et al., ECCV 2020,
arXiv 2008.08115), at an IoU of 0.5, on top of the matching of pycocotools.
"""

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from pycocotools import mask as coco_mask
from pycocotools.cocoeval import COCOeval

from ptnt_mm.utils.progress import watched

FOREGROUND, _BACKGROUND = 0.5, 0.1
"""IoUs: from the first, a detection matches an object; up to the second, it matches nothing."""


class Kind(StrEnum):
    """Kinds of detections, and missed objects."""

    CORRECT = 'correct'
    CLASSIFICATION = 'classification'
    LOCALISATION = 'localisation'
    BOTH = 'both'
    DUPLICATE = 'duplicate'
    BACKGROUND = 'background'
    MISSED = 'missed'


ERRORS = {
    Kind.CLASSIFICATION: 'right place, wrong class',
    Kind.LOCALISATION: 'right class, wrong place (IoU 0.1 to 0.5)',
    Kind.BOTH: 'wrong class and wrong place',
    Kind.DUPLICATE: 'the object has a detection with a higher score',
    Kind.BACKGROUND: 'nothing is there (IoU up to 0.1)',
    Kind.MISSED: 'no detection, not even one with a wrong class or place',
}
"""The kinds of errors, and what they mean."""

_FIXABLE = {Kind.CLASSIFICATION, Kind.LOCALISATION}
"""Fixing these makes a detection correct, if its object has no other. Others are removed."""


@dataclass
class Detection:
    """A detection that counts: pycocotools' entry, its error, and the id of its object.

    The object of an error is the one that the detection would have if it were fixed.
    """

    entry: dict
    kind: Kind
    target: int | None = None


@dataclass
class Truth:
    """An object that counts: pycocotools' entry.

    ``score`` is the highest of the detections that match it, or would if fixed; None without any.
    """

    entry: dict
    score: float | None = None


@dataclass
class ErrorSplit:
    """All detections in the order of their images, and all objects by their ids."""

    detections: list[Detection]
    truths: dict[int, Truth]

    @cached_property
    def counts(self) -> Counter[Kind]:
        """Number of errors of each kind."""
        missed = sum(truth.score is None for truth in self.truths.values())
        return Counter(detection.kind for detection in self.detections) + Counter(
            {Kind.MISSED: missed}
        )

    @cached_property
    def costs(self) -> dict[Kind, float]:
        """The AP that fixing all errors of a kind, and of no other, would gain."""
        now = self.average_precision()
        return {kind: self.average_precision({kind}) - now for kind in ERRORS}

    def average_precision(self, fixed: Collection[Kind] = ()) -> float:
        """AP at an IoU of 0.5 in [0, 1] if all errors of some kinds were fixed."""
        correct = {
            detection.target for detection in self.detections if detection.kind is Kind.CORRECT
        }
        # An object gets at most one detection: among those to fix, the one with the highest score.
        best = {}
        for detection in sorted(self.detections, key=lambda item: item.entry['score']):
            if detection.kind in _FIXABLE.intersection(fixed) and detection.target not in correct:
                best[detection.target] = detection
        results = defaultdict(list)
        for detection in self.detections:
            result = detection.entry['score'], detection.kind is Kind.CORRECT
            if detection.kind not in fixed:
                results[detection.entry['category_id']].append(result)
            elif best.get(detection.target) is detection:
                category = self.truths[detection.target].entry['category_id']
                results[category].append((detection.entry['score'], True))
        objects = Counter(
            truth.entry['category_id']
            for truth in self.truths.values()
            if truth.score is not None or Kind.MISSED not in fixed
        )
        values = [_average_precision(results[key], number) for key, number in objects.items()]
        return float(np.mean(values)) if values else 1.0


def split_errors(evaluation: COCOeval) -> ErrorSplit:
    """Classify the error of each detection of an evaluation, after ``evaluate()``."""
    split, params = ErrorSplit([], {}), evaluation.params
    images = len(params.imgIds)
    for i in watched(range(images), images, 'Errors'):
        truths, detections = {}, []
        # pycocotools' matches: by class, then by size ('all' first), then by image.
        for match in filter(None, evaluation.evalImgs[i :: images * len(params.areaRng)]):
            for key, ignored in zip(match['gtIds'], match['gtIgnore'], strict=True):
                if not ignored:
                    truths[key] = Truth(evaluation.cocoGt.anns[key])
            at_50 = match['dtMatches'][0].tolist(), match['dtIgnore'][0].tolist()
            for key, target, ignored in zip(match['dtIds'], *at_50, strict=True):
                if not ignored:
                    kind = Kind.CORRECT if target else Kind.BACKGROUND
                    entry = evaluation.cocoDt.anns[key]
                    detections.append(Detection(entry, kind, int(target) or None))
        false = [detection for detection in detections if detection.kind is not Kind.CORRECT]
        _explain(evaluation, false, [truth.entry for truth in truths.values()])
        for detection in detections:
            if truth := truths.get(detection.target):
                truth.score = max(truth.score or 0, detection.entry['score'])
        split.detections += detections
        split.truths |= truths
    return split


def overlaps(evaluation: COCOeval, found: list[dict], truths: list[dict]) -> np.ndarray:
    """The IoUs of detections with objects of the same image: (detections, objects)."""
    if not found or not truths:
        return np.zeros((len(found), len(truths)))
    shapes = [[entry['bbox'] for entry in entries] for entries in (found, truths)]
    if evaluation.params.iouType == 'segm':
        sources = (evaluation.cocoDt, found), (evaluation.cocoGt, truths)
        shapes = [[coco.annToRLE(entry) for entry in entries] for coco, entries in sources]
    return coco_mask.iou(*shapes, [0] * len(truths))


def _explain(evaluation: COCOeval, false: list[Detection], truths: list[dict]) -> None:
    """Classify the false detections of an image.

    If more than one kind fits, the order is that of TIDE's code.
    """
    categories = np.array([truth['category_id'] for truth in truths])
    ious = overlaps(evaluation, [detection.entry for detection in false], truths)
    for detection, row in zip(false, ious, strict=True):
        same = categories == detection.entry['category_id']
        own, other = row * same, row * ~same
        best_own, best_other = own.max(initial=0), other.max(initial=0)
        if _BACKGROUND <= best_own < FOREGROUND:
            detection.kind, detection.target = Kind.LOCALISATION, truths[own.argmax()]['id']
        elif best_other >= FOREGROUND:
            detection.kind, detection.target = Kind.CLASSIFICATION, truths[other.argmax()]['id']
        elif best_own >= FOREGROUND:
            detection.kind = Kind.DUPLICATE
        elif best_other > _BACKGROUND:
            detection.kind = Kind.BOTH


def _average_precision(results: list[tuple[float, bool]], objects: int) -> float:
    """COCO's AP of a class: the mean over 101 recalls of the best precision from there."""
    hits = np.array([right for _, right in sorted(results, key=lambda r: -r[0])], bool).cumsum()
    precision = hits / np.arange(1, len(hits) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    reached = np.searchsorted(hits / objects, np.linspace(0, 1, 101))
    # A recall that is not reached has a precision of 0.
    return float(np.append(envelope, 0)[reached].mean())
