"""The lines of YOLO's text files: a class, and a box, a polygon, or a box with more numbers."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from ptnt_mm.utils.text import first_few
from ptnt_mm.workbench.data.labels import LabelledImage, LabelledObject, Labels, Outcome, outlined
from ptnt_mm.workbench.data.reading.collector import NO_NUMBERS, number

_BOX, _WITH_SCORE, _WITH_TRACK = 5, 6, 7  # numbers on a line: of a label, a detector, a tracker
_FAR = 2  # sides of the image; coordinates beyond are not fractions
_ENOUGH = 10  # lines that show that all have keypoints
_SAMPLE = 1000  # lines that are compared
_FEWEST = 4  # numbers of keypoints
_NEAR = 0.02  # share of the image that a keypoint may be outside its box


def lengths_of_boxes(lines: Iterable[str], has_keypoints: bool, labels: Labels) -> set[int]:
    """The numbers of values of the lines that begin with a box; all others are polygons.

    Args:
        lines: The lines of all files.
        has_keypoints: Whether the settings say that keypoints follow the boxes.
        labels: Gets notes about keypoints.
    """
    counts: Counter[int] = Counter()
    sample, is_tracked = [], False
    for words in filter(None, map(str.split, lines)):
        counts[len(words)] += 1
        # In most videos, a track has a number beyond 2; a corner of a triangle never does.
        is_tracked |= len(words) == _WITH_TRACK and number(words[-1]) > _FAR
        if len(sample) < _SAMPLE:
            sample.append(list(map(number, words)))
    if has_keypoints:
        labels.notes.append('keypoints are not used, only the boxes around them')
        return set(counts)
    lengths = {_BOX, _WITH_SCORE, *([_WITH_TRACK] if is_tracked else [])}
    if len(counts) == 1 and len(sample) >= _ENOUGH and _have_keypoints(np.array(sample)):
        (length,) = counts
        labels.notes.append(
            f'warning: all lines have {length} numbers, of which the last {length - _BOX} lie in '
            'the box of the first: read as boxes with keypoints, which are not used'
        )
        lengths.add(length)
    return lengths


def _have_keypoints(rows: np.ndarray) -> bool:
    """Whether rows, (N, n), have a box and points inside it: x and y, with or without a flag."""
    centre, half, points = rows[:, 1:3], rows[:, 3:5] / 2, rows[:, _BOX:]
    is_in_image = (centre - half > -_NEAR) & (centre + half < 1 + _NEAR)
    if points.shape[1] < _FEWEST or not is_in_image.all():
        return False
    for step in (2, 3):
        if points.shape[1] % step == 0:
            pairs = points.reshape(len(points), -1, step)[..., :2]
            is_missing = (pairs == 0).all(axis=-1, keepdims=True)
            is_inside = np.abs(pairs - centre[:, None]) <= half[:, None] + _NEAR
            if (is_missing | is_inside).all():
                return True
    return False


def objects_of(
    labels: Labels,
    file: Path,
    lines: list[str],
    image: LabelledImage,
    names: Mapping[int, str],
    lengths: Collection[int],
) -> Iterator[LabelledObject]:
    """The objects of a file; those that cannot be used are reported.

    Args:
        labels: Gets the problems.
        file: The text file.
        lines: Its lines.
        image: Its image.
        names: The names of the classes by their numbers; empty if unknown.
        lengths: Those of :func:`lengths_of_boxes`.
    """
    for place, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        values, shown = [number(word) for word in words], f'line {place}: {line[:80]}'
        index = values[0]
        label = names.get(index, f'class {words[0]}')
        if any(value != value for value in values) or len(values) < _BOX:
            labels.report(file, NO_NUMBERS, shown, label)
            continue
        if not index.is_integer() or index < 0 or (names and index not in names):
            known = f'the classes are {first_few(names.values())}'
            detail = f'line {place}: {words[0]}; {known if names else "it is not an index"}'
            labels.report(file, 'objects of an unknown class', detail, label)
            continue
        coordinates = values[1:_BOX] if len(values) in lengths else values[1:]
        if max(coordinates) > _FAR:
            what = 'objects in pixels or percent, where YOLO has fractions of the image'
            labels.report(file, what, shown, label)
            continue
        if len(coordinates) % 2:
            labels.report(file, NO_NUMBERS, f'line {place} has {len(values)} numbers', label)
            continue
        if len(values) in (_WITH_SCORE, _WITH_TRACK) and len(values) in lengths:
            what = 'boxes with a score or a track number'
            labels.report(file, what, shown, label, Outcome.IN_PART)
        yield _object(names.get(index, f'class {int(index)}'), coordinates, *image.size)


def _object(label: str, values: list[float], width: int, height: int) -> LabelledObject:
    scaled = [value * (height if i % 2 else width) for i, value in enumerate(values)]
    if len(values) == 4:
        x, y, w, h = scaled
        return LabelledObject(label, (x - w / 2, y - h / 2, w, h))
    return outlined(label, scaled)
