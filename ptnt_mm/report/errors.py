"""The errors of a detector, split by what is wrong, and the AP that each kind costs.

As "TIDE: A General Toolbox for Identifying Object Detection Errors" (Bolya et al., ECCV 2020,
arXiv 2008.08115) does it, at an IoU of 0.5, on top of pycocotools' own matching.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np
from pycocotools import mask as coco_mask
from pycocotools.cocoeval import COCOeval

from ptnt_mm.utils.progress import watched

FOREGROUND, _BACKGROUND = 0.5, 0.1
"""IoUs: from the first on, a detection has its object; up to the second, it has none."""


class Kind(StrEnum):
    """What a detection is; an object can be missed."""

    CORRECT = 'correct'
    CLASSIFICATION = 'classification'
    LOCALISATION = 'localisation'
    BOTH = 'both'
    DUPLICATE = 'duplicate'
    BACKGROUND = 'background'
    MISSED = 'missed'


ERRORS = {
    Kind.CLASSIFICATION: 'the right place, another class',
    Kind.LOCALISATION: 'the right class, beside the object (IoU 0.1 to 0.5)',
    Kind.BOTH: 'another class, and beside the object',
    Kind.DUPLICATE: 'the object has a detection with a higher score',
    Kind.BACKGROUND: 'nothing is there (IoU up to 0.1)',
    Kind.MISSED: 'nothing was found, not even with a wrong class or place',
}
"""The kinds of errors, and what they mean."""

_MENDED = {Kind.CLASSIFICATION, Kind.LOCALISATION}
"""Fixing these makes a detection correct, if its object has no other. Others are removed."""


@dataclass
class Detection:
    """A detection that counts: pycocotools' entry, what is wrong, and the id of its object.

    The object of an error is the one that the detection would have if it were mended.
    """

    entry: dict
    kind: Kind
    target: int | None = None


@dataclass
class Truth:
    """An object that counts: pycocotools' entry, and whether a detection has it.

    ``score`` is the highest of the detections that have it, or would if mended; None if none.
    """

    entry: dict
    found: bool = False
    score: float | None = None


@dataclass
class ErrorSplit:
    """All detections in the order of their images, and all objects by their ids."""

    detections: list[Detection]
    truths: dict[int, Truth]

    @cached_property
    def counts(self) -> Counter[Kind]:
        """How many errors of each kind there are."""
        counts = Counter(one.kind for one in self.detections)
        return counts + Counter({Kind.MISSED: self._missed().total()})

    @cached_property
    def costs(self) -> dict[Kind, float]:
        """The AP that fixing all errors of a kind, and of no other, would gain."""
        now = self.average_precision()
        return {kind: self.average_precision({kind}) - now for kind in ERRORS}

    def average_precision(self, fixed: Collection[Kind] = ()) -> float:
        """AP at an IoU of 0.5 in [0, 1] if all errors of some kinds were fixed."""
        results = defaultdict(lambda: ([], []))
        for category, score, right in self._results(fixed):
            results[category][0].append(score)
            results[category][1].append(right)
        objects = Counter(truth.entry['category_id'] for truth in self.truths.values())
        if Kind.MISSED in fixed:
            objects -= self._missed()
        values = [_average_precision(*results[key], number) for key, number in objects.items()]
        return float(np.mean(values)) if values else 1.0

    def _missed(self) -> Counter[int]:
        """How many objects of each class have no detection, nor would if errors were mended."""
        missed = (truth for truth in self.truths.values() if truth.score is None)
        return Counter(truth.entry['category_id'] for truth in missed)

    def _results(self, fixed: Collection[Kind]) -> Iterator[tuple[int, float, bool]]:
        """Category, score and correctness of what is left when some kinds are fixed."""
        # An object gets one detection at most: of those to mend, that of the highest score.
        best: dict[int, Detection] = {}
        for one in sorted(self.detections, key=lambda one: one.entry['score']):
            if one.kind in _MENDED.intersection(fixed) and not self.truths[one.target].found:
                best[one.target] = one
        for one in self.detections:
            if one.kind not in fixed:
                yield one.entry['category_id'], one.entry['score'], one.kind is Kind.CORRECT
            elif best.get(one.target) is one:
                yield self.truths[one.target].entry['category_id'], one.entry['score'], True


def split_errors(evaluation: COCOeval) -> ErrorSplit:
    """Say of each detection of an evaluation, after ``evaluate()``, what is wrong with it."""
    split = ErrorSplit([], {})
    # What pycocotools matched: all sizes come first, for each class and image.
    of_images = {image: [] for image in evaluation.params.imgIds}
    for match in filter(None, evaluation.evalImgs):
        if match['aRng'] == evaluation.params.areaRng[0]:
            of_images[match['image_id']].append(match)
    for matches in watched(of_images.values(), len(of_images), 'Errors'):
        truths = [
            Truth(evaluation.cocoGt.anns[key])
            for match in matches
            for key, ignored in zip(match['gtIds'], match['gtIgnore'], strict=True)
            if not ignored
        ]
        detections = list(_detections(evaluation, matches))
        _explain(evaluation, [one for one in detections if one.kind is not Kind.CORRECT], truths)
        by_id = {truth.entry['id']: truth for truth in truths}
        for one in detections:
            if truth := by_id.get(one.target):
                truth.found |= one.kind is Kind.CORRECT
                truth.score = max(truth.score or 0, one.entry['score'])
        split.detections += detections
        split.truths |= by_id
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


def _detections(evaluation: COCOeval, matches: Iterable[dict]) -> Iterator[Detection]:
    """Those that count; of false ones it is not known yet what is wrong."""
    for match in matches:
        at_50 = (match[key][0].tolist() for key in ('dtMatches', 'dtIgnore'))
        for key, target, ignored in zip(match['dtIds'], *at_50, strict=True):
            if not ignored:
                kind = Kind.CORRECT if target else Kind.BACKGROUND
                yield Detection(evaluation.cocoDt.anns[key], kind, int(target) or None)


def _explain(evaluation: COCOeval, false: list[Detection], truths: list[Truth]) -> None:
    """Find what is wrong with the false detections of an image.

    The order is that of TIDE's own code, where more than one kind would fit.
    """
    entries = [truth.entry for truth in truths]
    categories = np.array([entry['category_id'] for entry in entries])
    for one, ious in zip(
        false, overlaps(evaluation, [o.entry for o in false], entries), strict=True
    ):
        same = categories == one.entry['category_id']
        own, other = ious * same, ious * ~same
        best_own, best_other = own.max(initial=0), other.max(initial=0)
        if _BACKGROUND <= best_own < FOREGROUND:
            one.kind, one.target = Kind.LOCALISATION, entries[own.argmax()]['id']
        elif best_other >= FOREGROUND:
            one.kind, one.target = Kind.CLASSIFICATION, entries[other.argmax()]['id']
        elif best_own >= FOREGROUND:
            one.kind = Kind.DUPLICATE
        elif best_other > _BACKGROUND:
            one.kind = Kind.BOTH


def _average_precision(scores: list[float], right: list[bool], objects: int) -> float:
    """COCO's AP of a class: the mean over 101 recalls of the best precision from there on."""
    order = np.argsort(-np.array(scores), kind='mergesort')
    hits = np.array(right, bool)[order].cumsum()
    precision = hits / np.arange(1, len(hits) + 1)
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    reached = np.searchsorted(hits / objects, np.linspace(0, 1, 101))
    # A recall that is not reached has a precision of 0.
    return float(np.append(envelope, 0)[reached].mean())
