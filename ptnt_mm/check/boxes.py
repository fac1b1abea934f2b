"""Boxes: inside their images, not empty, in COCO's order, and loaded by mmdet."""

from collections.abc import Iterator

import numpy as np

from ptnt_mm.check.coco_annotations import DetectionData
from ptnt_mm.utils.findings import Finding, Severity, error, ok, report_wrong, warning
from ptnt_mm.utils.text import counted

_ROUNDING = 1.0  # pixels that a box may extend past its image: annotation tools round
_MANY = 0.1  # share of boxes leaving their images that cannot all be typos
_FEW = 0.01  # share of boxes listed twice that public data sets have too
_ENOUGH = 20  # boxes needed to determine their unit
_NEAR_THE_CORNER = 0.7  # share of an image's side: boxes in pixels reach further in some image

_FORMAT = 'COCO has [x, y, width, height] in pixels: convert them'


def check_boxes(data: list[DetectionData]) -> Iterator[Finding]:
    """Check every box of every data set."""
    for dataset in data:
        if dataset.file is not None and dataset.file.annotations:
            found = [*_other_format(dataset)] or [
                *_each(dataset),
                *_twice(dataset),
                *_near_the_corner(dataset),
            ]
            yield from found or [ok(dataset.name, counted(len(dataset.boxes), 'box'))]


def _other_format(data: DetectionData) -> Iterator[Finding]:
    """Find boxes that are not [x, y, width, height] in pixels, judged by all together."""
    boxes, sizes = data.boxes, data.sizes
    if not np.isfinite(boxes).all() or not boxes.any():
        return
    if (boxes >= 0).all() and boxes.max() <= 1:
        what = f'all {len(boxes)} boxes are between 0 and 1, as fractions of the image'
        yield error(data.name, what, _FORMAT)
        return
    leaving = (boxes[:, :2] + boxes[:, 2:] > sizes + _ROUNDING).any(axis=1)
    as_corners = (boxes[:, 2:] > boxes[:, :2]).all() and (boxes[:, 2:] <= sizes + _ROUNDING).all()
    if as_corners and leaving.mean() >= _MANY:
        what = 'boxes not inside their images, and all would be as [x1, y1, x2, y2]'
        yield from _report_boxes(Severity.ERROR, data, leaving, what, _FORMAT)


def _each(data: DetectionData) -> Iterator[Finding]:
    """Faults of single boxes; only the first of each box is reported."""
    boxes, sizes = data.boxes, data.sizes
    area = np.array([annotation['area'] for annotation in data.file.annotations], float)
    with np.errstate(invalid='ignore'):
        first, last = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
        beyond = (first < -_ROUNDING).any(axis=1) | (last > sizes + _ROUNDING).any(axis=1)
        outside = ~(np.minimum(last, sizes) > np.maximum(first, 0)).all(axis=1)
        pixels = boxes[:, 2] * boxes[:, 3]
        other_area = ~((area < 1.5 * pixels + 4) & (area > 0.001 * pixels))
    not_finite = ~np.isfinite(boxes).all(axis=1)
    negative, thin = ((boxes[:, 2:] < side).any(axis=1) for side in (0, 1))
    dropped = 'mmdet drops them silently'
    background = f'{dropped}, and the object is background'
    many = 'they may be [x1, y1, x2, y2] or [centre x, centre y, width, height], or belong to '
    clipped = many + 'images of a different size' if beyond.mean() >= _MANY else 'mmdet clips them'
    no_area = f'{dropped}: area is width x height, or that of the mask'
    # Training only needs areas above 0.
    other_area &= not data.trains
    sizes_of = 'the precision of small, medium and large objects depends on them'
    rules = (
        (not_finite, Severity.ERROR, 'boxes not finite', 'the loss would be NaN'),
        (negative, Severity.ERROR, 'boxes of negative size', f'{_FORMAT}; {dropped}'),
        (thin, Severity.WARNING, 'boxes less than 1 pixel wide or high', background),
        (
            outside,
            Severity.ERROR,
            'boxes outside of their images',
            f'{dropped}; are these the right images?',
        ),
        (area <= 0, Severity.ERROR, 'areas of 0 or less', no_area),
        (_is_lost(data), Severity.ERROR, 'objects', 'mmdet drops them for another reason'),
        (beyond, Severity.WARNING, 'boxes partly outside their images', clipped),
        (other_area, Severity.WARNING, 'areas that do not match the boxes in pixels', sizes_of),
    )
    left = np.ones(len(boxes), bool)
    for holds, severity, what, advice in rules:
        yield from _report_boxes(severity, data, left & holds, what, advice)
        left &= ~holds


def _is_lost(data: DetectionData) -> np.ndarray:
    """Whether mmdet skips each object although its class is used, (N,)."""
    if data.built is None:
        return np.zeros(len(data.boxes), bool)
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
    last = data.boxes[:, :2] + data.boxes[:, 2:]
    if len(last) < _ENOUGH or not np.isfinite(last).all():
        return
    reach = (last / data.sizes).max(axis=0)
    as_per_cent = last.max() <= 100 and np.median(data.sizes) > 110
    if as_per_cent or (reach < _NEAR_THE_CORNER).all():
        across, down = (f'{part:.0%}' for part in reach)
        what = f'no box reaches beyond {across} of the width or {down} of the height of its image'
        unit = 'they may be in percent' if as_per_cent else 'they may be of smaller images'
        yield warning(data.name, what, f'{unit}; {_FORMAT}')


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
