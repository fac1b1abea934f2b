"""Boxes: inside their images, not empty, in COCO's order, and loaded by mmdet."""

from collections.abc import Iterator

import numpy as np

from ptnt_mm.check.coco_annotations import DetectionDataset
from ptnt_mm.labels.boxes import (
    CORNER_AND_SIZE,
    Listed,
    advice_of,
    find_cause,
    judge,
    judge_repeats,
    near_the_corner,
)
from ptnt_mm.utils.findings import Finding, Severity, ok, report_wrong, warning
from ptnt_mm.utils.text import counted

_FORMAT = f'COCO has {CORNER_AND_SIZE.text} in pixels: convert them'


def check_boxes(data: list[DetectionDataset]) -> Iterator[Finding]:
    """Check every box of every data set."""
    for dataset in data:
        if dataset.file is not None and dataset.file.annotations:
            found = [*_all_wrong(dataset)] or [*_each(dataset), *_near_the_corner(dataset)]
            yield from found or [ok(dataset.name, counted(len(dataset.boxes.values), 'box'))]


def _all_wrong(data: DetectionDataset) -> Iterator[Finding]:
    """Find a single cause for which all boxes are wrong."""
    if (cause := find_cause(data.boxes, CORNER_AND_SIZE)) is not None:
        yield from _report_boxes(Severity.ERROR, data, cause.chosen, cause.what, cause.advice)


def _each(data: DetectionDataset) -> Iterator[Finding]:
    """Faults of single boxes, then objects that are lost or repeated without one."""
    left = np.ones(len(data.boxes.values), bool)
    for rule, chosen in judge(data.boxes):
        advice = advice_of(rule, chosen)
        yield from _report_boxes(rule.severity, data, chosen, rule.what, advice)
        left &= ~chosen | rule.is_kept
    advice = 'mmdet drops them for another reason'
    yield from _report_boxes(Severity.ERROR, data, left & _is_lost(data), 'objects', advice)
    (places,) = np.nonzero(left)
    for rule, chosen in judge_repeats([_listed(data, i) for i in places]):
        repeated = np.zeros_like(left)
        repeated[places[chosen]] = True
        yield from _report_boxes(rule.severity, data, repeated, rule.what, rule.advice)


def _listed(data: DetectionDataset, place: int) -> Listed:
    entry, box = data.file.annotations[place], data.boxes.inside[place]
    return Listed(
        (entry['image_id'], *box.tolist()),
        entry['category_id'],
        bool(entry.get('iscrowd') or entry.get('ignore')),
        entry.get('segmentation') or None,
    )


def _is_lost(data: DetectionDataset) -> np.ndarray:
    """Whether mmdet skips each object although its class is used, (N,)."""
    if data.built is None:
        return np.zeros(len(data.boxes.values), bool)
    asked = [
        entry['category_id'] in data.labels
        and not entry.get('ignore')
        and entry['id'] not in data.refused
        for entry in data.file.annotations
    ]
    return np.array(asked, bool) & ~data.is_loaded


def _near_the_corner(data: DetectionDataset) -> Iterator[Finding]:
    """Report boxes in a different unit: all boxes of all images are near the upper left corner."""
    if (found := near_the_corner(data.boxes)) is not None:
        what, why = found
        yield warning(data.name, what, f'{why}; {_FORMAT}')


def _report_boxes(
    severity: Severity, data: DetectionDataset, chosen: np.ndarray, what: str, advice: str
) -> Iterator[Finding]:
    """Report the chosen boxes, (N,), with their ids and images."""
    named = []
    for i in np.flatnonzero(chosen):
        entry = data.file.annotations[i]
        image = data.file.images[entry['image_id']]
        size = f'{image["width"]}x{image["height"]}'
        named.append(f'id {entry["id"]} {entry["bbox"]} in {image["file_name"]} ({size})')
    yield from report_wrong(severity, data.name, named, len(chosen), what, advice)
