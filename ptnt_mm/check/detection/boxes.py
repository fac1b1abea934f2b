"""Boxes: inside their images, of some size, and in COCO's order."""

from collections.abc import Iterator

import numpy as np

from ptnt_mm.check.detection.data import DetectionData
from ptnt_mm.coco_file import CocoFile
from ptnt_mm.finding import Finding, error, sound, warning
from ptnt_mm.wording import some

_ROUNDING = 1.0
"""Pixels that a box may leave its image by: annotation tools round."""

_MANY = 0.1
"""Of the boxes: so many that leave their images are not the annotators' slips."""


def check_boxes(data: list[DetectionData]) -> Iterator[Finding]:
    """Look at every box of every annotation file, once."""
    reported = set()
    for one in data:
        if one.file is None or not one.file.annotations or one.file.path in reported:
            continue
        reported.add(one.file.path)
        boxes, sizes = _arrays(one.file)
        misread = [*_other_format(one, boxes, sizes)]
        found = misread or [*_of_no_size(one, boxes), *_outside(one, boxes, sizes), *_area(one)]
        yield from found or [sound(one.name, f'{len(boxes)} boxes')]


def is_kept(file: CocoFile) -> np.ndarray:
    """Whether mmdet keeps the box of each annotation, (N,); categories are not looked at."""
    annotations = file.annotations
    if not annotations:
        return np.zeros(0, bool)
    boxes, sizes = _arrays(file)
    area = np.array([annotation['area'] for annotation in annotations], float)
    ignored = np.array([bool(annotation.get('ignore')) for annotation in annotations])
    inside = _overlaps(boxes, sizes)
    return ~ignored & inside & (area > 0) & (boxes[:, 2:] >= 1).all(axis=1)


def _arrays(file: CocoFile) -> tuple[np.ndarray, np.ndarray]:
    """Boxes (N, 4) as x, y, width, height, and sizes of their images (N, 2) as width, height."""
    boxes = np.array([annotation['bbox'] for annotation in file.annotations], float)
    images = [file.images[annotation['image_id']] for annotation in file.annotations]
    return boxes, np.array([(image['width'], image['height']) for image in images], float)


def _overlaps(boxes: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Whether each box has a part inside its image."""
    with np.errstate(invalid='ignore'):
        last = np.minimum(boxes[:, :2] + boxes[:, 2:], sizes)
        return (last > np.maximum(boxes[:, :2], 0)).all(axis=1)


def _other_format(data: DetectionData, boxes: np.ndarray, sizes: np.ndarray) -> Iterator[Finding]:
    """Boxes that are no [x, y, width, height] in pixels, judged by all of them together."""
    if not np.isfinite(boxes).all() or not boxes.any():
        return
    format_of_coco = 'COCO has [x, y, width, height] in pixels: convert them'
    if (boxes >= 0).all() and boxes.max() <= 1:
        what = f'all {len(boxes)} boxes lie between 0 and 1, as fractions of the image'
        yield error(data.name, what, format_of_coco)
        return
    leaving = (boxes[:, :2] + boxes[:, 2:] > sizes + _ROUNDING).any(axis=1)
    as_corners = (boxes[:, 2:] > boxes[:, :2]).all() and (boxes[:, 2:] <= sizes + _ROUNDING).all()
    if as_corners and leaving.mean() >= _MANY:
        what = (
            f'{leaving.sum()} of {len(boxes)} boxes not inside their images, and all would be as '
            f'[x1, y1, x2, y2]: {_examples(data, leaving)}'
        )
        yield error(data.name, what, format_of_coco)


def _of_no_size(data: DetectionData, boxes: np.ndarray) -> Iterator[Finding]:
    """Boxes that are not finite, of negative size, or too small to be kept."""
    broken = ~np.isfinite(boxes).all(axis=1)
    if broken.any():
        what = f'{broken.sum()} of {len(boxes)} boxes not finite: {_examples(data, broken)}'
        yield error(data.name, what, 'the loss would be NaN: remove them')
    negative = ~broken & (boxes[:, 2:] < 0).any(axis=1)
    if negative.any():
        what = (
            f'{negative.sum()} of {len(boxes)} boxes of negative size: {_examples(data, negative)}'
        )
        yield error(data.name, what, 'COCO has [x, y, width, height]; mmdet drops them unsaid')
    small = ~broken & ~negative & (boxes[:, 2:] < 1).any(axis=1)
    if small.any():
        what = f'{small.sum()} of {len(boxes)} boxes less than 1 pixel wide or high'
        advice = 'mmdet drops them unsaid, and the object is background'
        yield warning(data.name, f'{what}: {_examples(data, small)}', advice)


def _outside(data: DetectionData, boxes: np.ndarray, sizes: np.ndarray) -> Iterator[Finding]:
    """Boxes that lie outside their images, or leave them."""
    whole = np.isfinite(boxes).all(axis=1) & (boxes[:, 2:] > 0).all(axis=1)
    outside = whole & ~_overlaps(boxes, sizes)
    if outside.any():
        what = f'{outside.sum()} of {len(boxes)} boxes outside of their images'
        advice = 'mmdet drops them unsaid; are these the right images?'
        yield error(data.name, f'{what}: {_examples(data, outside)}', advice)
    first, last = boxes[:, :2], boxes[:, :2] + boxes[:, 2:]
    beyond = (first < -_ROUNDING).any(axis=1) | (last > sizes + _ROUNDING).any(axis=1)
    leaving = whole & ~outside & beyond
    if leaving.any():
        what = f'{leaving.sum()} of {len(boxes)} boxes not wholly inside their images'
        advice = 'mmdet clips them; '
        if leaving.mean() >= _MANY:
            advice += 'so many may be [x1, y1, x2, y2], or belong to images of another size'
        else:
            advice += 'clip them yourself if they should end at the border'
        yield warning(data.name, f'{what}: {_examples(data, leaving)}', advice)


def _area(data: DetectionData) -> Iterator[Finding]:
    """Areas that make mmdet drop a box which is in order otherwise."""
    flat = np.array([annotation['area'] <= 0 for annotation in data.file.annotations])
    boxes, _ = _arrays(data.file)
    flat &= (boxes[:, 2:] >= 1).all(axis=1)
    if flat.any():
        what = f'{flat.sum()} of {len(flat)} areas 0 or less: {_examples(data, flat)}'
        yield error(data.name, what, 'mmdet drops them unsaid: area is width x height, or the mask')


def _examples(data: DetectionData, chosen: np.ndarray) -> str:
    """The first few chosen boxes, with their ids and images."""
    annotations = [data.file.annotations[i] for i in np.flatnonzero(chosen)]
    return some(_described(data.file, annotation) for annotation in annotations)


def _described(file: CocoFile, annotation: dict) -> str:
    image = file.images[annotation['image_id']]
    size = f'{image["width"]}x{image["height"]}'
    return f'id {annotation["id"]} {annotation["bbox"]} in {image["file_name"]} ({size})'
