"""The boxes of mmrotate's data sets, with an angle or four corners."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np

from ptnt_mm.utils.findings import Finding, Severity, error, note, ok, report_wrong
from ptnt_mm.utils.text import counted
from ptnt_mm.workbench.check.data_sets import LoadedDataset
from ptnt_mm.workbench.check.image_lists import check_list, loading_of
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.data.image_files import size_as_read
from ptnt_mm.workbench.data.rotated_boxes import around, corners_of

_NUMBERS = dict(hbox=4, rbox=5, qbox=8)
"""How many numbers a box of each of the hosts' types has."""

_LINES = (
    'each line of its files is x1 y1 x2 y2 x3 y3 x4 y4 CLASS DIFFICULT, without a header or empty '
    'lines; the classes are those of metainfo.classes, without spaces'
)

_SMALLEST = 1.0  # an area in pixels

_UPRIGHT = 1e-3  # radians


@dataclass(frozen=True)
class _Box:
    """A box as a data set lists it."""

    image: str
    values: tuple[float, ...]

    def __str__(self) -> str:
        return f'{list(self.values)} in {self.image}'


def check_lists_of_boxes(data: list[LoadedDataset], view: ConfigView) -> Iterator[Finding]:
    """Report the number of images that mmrotate lists for each data set, or why there are none."""
    for dataset in data:
        if _has_no_objects(dataset):
            advice = 'write labels, or correct ann_file'
            yield error(dataset.name, f'no image of {dataset.built.ann_file} has an object', advice)
        elif dataset.why_not_built and dataset.is_a('DOTADataset'):
            for found in check_list(dataset):
                yield replace(found, advice=_LINES)
        elif not dataset.is_left_out:
            yield from check_list(dataset)


def _has_no_objects(data: LoadedDataset) -> bool:
    """Whether a data set was read, and all of its images were filtered out."""
    filtered = data.settings.get('filter_cfg') or {}
    return (
        data.built is not None
        and not data.images
        and not data.why_not_built
        and all(path.exists() for path in data.data_set.paths())
        and data.settings.get('indices') is None
        and bool(filtered.get('filter_empty_gt'))
    )


def check_rotated_boxes(data: list[LoadedDataset]) -> Iterator[Finding]:
    """Check the numbers of every box: how many there are, their area and their angle."""
    for dataset in data:
        if not dataset.images:
            continue
        boxes = _boxes_of(dataset)
        if not boxes:
            severity = Severity.ERROR if dataset.trains else Severity.NOTE
            yield Finding(severity, dataset.name, f'no object in {len(dataset.images)} images', '')
            continue
        found = list(_findings(dataset, boxes))
        yield from found or [ok(dataset.name, counted(len(boxes), 'box'))]


def check_boxes_are_inside(data: list[LoadedDataset]) -> Iterator[Finding]:
    """Read the size of every image, and find boxes of which nothing is inside."""
    for dataset in data:
        boxes = [box for box in _boxes_of(dataset) if len(box.values) in (5, 8)]
        # Another check reports images that cannot be read.
        sizes = {str(image.path): size_as_read(image.path) for image in dataset.images}
        boxes = [box for box in boxes if sizes.get(box.image) and np.isfinite(box.values).all()]
        outside = []
        for box in boxes:
            left, top, right, bottom = around(corners_of(np.array([box.values])))[0]
            width, height = sizes[box.image]
            if right <= 0 or bottom <= 0 or left >= width or top >= height:
                outside.append(f'{box} ({width}x{height})')
        advice = 'the labels are of images of another size, or of other images'
        what = 'boxes outside of their image'
        yield from report_wrong(Severity.ERROR, dataset.name, outside, len(boxes), what, advice)


def _boxes_of(data: LoadedDataset) -> list[_Box]:
    """All boxes that a data set lists."""
    entries = data.built.data_list if data.built is not None else ()
    return [
        _Box(str(Path(entry['img_path'])), tuple(map(float, instance['bbox'])))
        for entry in entries
        for instance in entry.get('instances', ())
        if len(instance['bbox'])  # mmrotate lists an empty one for images to predict
    ]


def _findings(data: LoadedDataset, boxes: list[_Box]) -> Iterator[Finding]:
    loading = loading_of(data.data_set.pipeline)
    kind = loading.get('box_type', 'hbox')
    numbers = _NUMBERS.get(kind)
    counts = Counter(len(box.values) for box in boxes)
    if loading and numbers is not None and set(counts) != {numbers}:
        odd = next(count for count, _ in counts.most_common() if count != numbers)
        fitting = next((name for name, count in _NUMBERS.items() if count == odd), None)
        advice = f"write box_type='{fitting}'" if fitting and len(counts) == 1 else 'correct them'
        what = f'boxes of {odd} numbers, where box_type={kind!r} of LoadAnnotations has {numbers}'
        wrong = [str(box) for box in boxes if len(box.values) == odd]
        yield from report_wrong(Severity.ERROR, data.name, wrong, len(boxes), what, advice)
        return
    broken = [str(box) for box in boxes if not np.isfinite(box.values).all()]
    what, advice = 'boxes that are not finite', 'remove them'
    yield from report_wrong(Severity.ERROR, data.name, broken, len(boxes), what, advice)
    boxes = [box for box in boxes if np.isfinite(box.values).all() and len(box.values) > 4]
    turned = [box for box in boxes if len(box.values) == 5]
    wrong = [str(box) for box in turned if abs(box.values[4]) > 2 * math.pi]
    what = 'boxes with an angle beyond 2 pi'
    advice = 'mmrotate has radians, clockwise: multiply degrees by pi / 180'
    yield from report_wrong(Severity.ERROR, data.name, wrong, len(turned), what, advice)
    empty = [str(box) for box in boxes if _area(box) < _SMALLEST]
    what = f'boxes smaller than {_SMALLEST:g} pixel'
    yield from report_wrong(
        Severity.WARNING, data.name, empty, len(boxes), what, 'nothing is learned from them'
    )
    if boxes and all(map(_is_upright, boxes)):
        yield note(data.name, 'all boxes are upright: a detector of mmdet would do')


def _area(box: _Box) -> float:
    """The area in pixels, whatever the order of corners; 0 for a box with a negative side."""
    if len(box.values) == 5:
        width, height = box.values[2:4]
        return width * height if min(width, height) > 0 else 0.0
    corners = np.array(box.values, np.float32).reshape(4, 2)
    return cv2.contourArea(cv2.convexHull(corners))


def _is_upright(box: _Box) -> bool:
    """Whether all sides run along the image's."""
    if len(box.values) == 5:
        return abs(math.remainder(box.values[4], math.pi / 2)) < _UPRIGHT
    corners = np.array(box.values).reshape(4, 2)
    run, rise = np.abs(np.roll(corners, -1, 0) - corners).T
    return bool((np.minimum(run, rise) <= _UPRIGHT * np.maximum(run, rise)).all())
