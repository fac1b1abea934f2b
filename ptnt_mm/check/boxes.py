"""Boxes: inside their images, not empty, in COCO's order, and loaded by mmdet."""

from collections.abc import Iterator

import numpy as np

from ptnt_mm.check.coco_annotations import DetectionData
from ptnt_mm.labels.boxes import (
    CORNER_AND_SIZE,
    DROPPED,
    RULES,
    advice_of,
    fault_of_each,
    find_cause,
    near_the_corner,
)
from ptnt_mm.utils.findings import Finding, Severity, ok, report_wrong, warning
from ptnt_mm.utils.text import counted

_MANY = 0.1  # share of boxes listed again that cannot all be typos
_FEW = 0.01  # share of boxes listed twice that public data sets have too

_FORMAT = f'COCO has {CORNER_AND_SIZE.text} in pixels: convert them'


def check_boxes(data: list[DetectionData]) -> Iterator[Finding]:
    """Check every box of every data set."""
    for dataset in data:
        if dataset.file is not None and dataset.file.annotations:
            found = [*_all_wrong(dataset)] or [
                *_each(dataset),
                *_twice(dataset),
                *_near_the_corner(dataset),
            ]
            yield from found or [ok(dataset.name, counted(len(dataset.boxes.values), 'box'))]


def _all_wrong(data: DetectionData) -> Iterator[Finding]:
    """Find a single cause for which all boxes are wrong."""
    if (cause := find_cause(data.boxes, CORNER_AND_SIZE)) is not None:
        yield from _report_boxes(Severity.ERROR, data, cause.chosen, cause.what, cause.advice)


def _each(data: DetectionData) -> Iterator[Finding]:
    """Faults of single boxes; one that mmdet drops is reported once."""
    first = fault_of_each(data.boxes)
    for i, rule in enumerate(RULES):
        chosen, advice = first == i, advice_of(rule, (first == i).mean())
        yield from _report_boxes(rule.fault.severity, data, chosen, rule.fault.what, advice)
    area = np.array([annotation['area'] for annotation in data.file.annotations], float)
    pixels = data.boxes.values[:, 2:].prod(axis=1)
    no_area = f'{DROPPED}: area is width x height, or that of the mask'
    # Training only needs areas above 0.
    other_area = ~((area < 1.5 * pixels + 4) & (area > 0.001 * pixels)) & (not data.trains)
    sizes_of = 'the precision of small, medium and large objects depends on them'
    rules = (
        (area <= 0, Severity.ERROR, 'areas of 0 or less', no_area),
        (_is_lost(data), Severity.ERROR, 'objects', 'mmdet drops them for another reason'),
        (other_area, Severity.WARNING, 'areas that do not match the boxes in pixels', sizes_of),
    )
    left = np.array([rule.is_kept for rule in RULES] + [True])[first]
    for holds, severity, what, advice in rules:
        yield from _report_boxes(severity, data, left & holds, what, advice)
        left &= ~holds


def _is_lost(data: DetectionData) -> np.ndarray:
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


def _twice(data: DetectionData) -> Iterator[Finding]:
    """Report objects with the same image and box, in the same or a different category."""
    keys = ((a['image_id'], a['category_id'], *a['bbox']) for a in data.file.annotations)
    first: dict[tuple, int] = {}
    again = np.array([first.setdefault(key, i) < i for i, key in enumerate(keys)])
    severity = Severity.WARNING if again.mean() > _FEW else Severity.NOTE
    advice = 'keep one of each: the model would learn to predict both'
    yield from _report_boxes(severity, data, again, 'objects listed twice', advice)
    # In some public data sets, objects have several classes; in most, few do.
    places = ((a['image_id'], *a['bbox']) for a in data.file.annotations)
    seen: dict[tuple, int] = {}
    other = np.array([seen.setdefault(place, i) < i for i, place in enumerate(places)]) & ~again
    if other.mean() > _MANY:
        advice = 'keep the right one: the model would learn contradictory classes'
        yield from _report_boxes(
            Severity.WARNING, data, other, 'boxes listed again as a different class', advice
        )


def _near_the_corner(data: DetectionData) -> Iterator[Finding]:
    """Report boxes in a different unit: all boxes of all images are near the upper left corner."""
    if (found := near_the_corner(data.boxes)) is not None:
        what, why = found
        yield warning(data.name, what, f'{why}; {_FORMAT}')


def _report_boxes(
    severity: Severity, data: DetectionData, chosen: np.ndarray, what: str, advice: str
) -> Iterator[Finding]:
    """Report the chosen boxes, (N,), with their ids and images."""
    named = []
    for i in np.flatnonzero(chosen):
        entry = data.file.annotations[i]
        image = data.file.images[entry['image_id']]
        size = f'{image["width"]}x{image["height"]}'
        named.append(f'id {entry["id"]} {entry["bbox"]} in {image["file_name"]} ({size})')
    yield from report_wrong(severity, data.name, named, len(chosen), what, advice)
