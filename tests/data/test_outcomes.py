"""Messages say which labels with problems are used, and count ignored regions."""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from data.made import HEIGHT, WIDTH, noise, read
from ptnt_mm.workbench.data.labels import LabelledObject, Labels, Outcome, ignored_regions
from ptnt_mm.workbench.data.recognise import summary

_BOX = [10, 5, 20, 30]
_POLYGON = [10, 5, 30, 5, 30, 35, 10, 35]


def coco(root: Path, *objects: Mapping) -> Path:
    """A file of one image, with an object that is right and others."""
    noise(root / 'a.png')
    right = dict(bbox=[60, 5, 20, 30], segmentation=[[60, 5, 80, 5, 80, 35, 60, 35]])
    content = dict(
        images=[dict(id=1, file_name='a.png', width=WIDTH, height=HEIGHT)],
        annotations=[
            dict(id=i, image_id=1, category_id=1) | entry
            for i, entry in enumerate([right, *objects])
        ],
        categories=[dict(id=1, name='cat')],
    )
    (root / 'labels.json').write_text(json.dumps(content))
    return root


def others(labels: Labels) -> list[LabelledObject]:
    """The objects but the one that is right."""
    (image,) = labels.images
    return list(image.objects[1:])


@pytest.mark.parametrize(
    ('entry', 'outcome', 'box', 'has_mask'),
    [
        (dict(bbox=[10, 5, -20, 30]), Outcome.LEFT_OUT, None, False),
        (dict(bbox=[10, 5, 0.5, 30]), Outcome.LEFT_OUT, None, False),
        (dict(bbox=[10, 5, 'x', 30]), Outcome.LEFT_OUT, None, False),
        (dict(bbox=[10, 5, 20]), Outcome.LEFT_OUT, None, False),
        (dict(bbox=[*_BOX, float('inf')]), Outcome.LEFT_OUT, None, False),
        (dict(bbox=[10, 5, 20, 10**400]), Outcome.LEFT_OUT, None, False),
        (dict(bbox=_BOX, category_id=7), Outcome.LEFT_OUT, None, False),
        (dict(bbox=[-10, 5, 40, 30]), Outcome.CLIPPED, (0, 5, 30, 30), False),
        (dict(bbox=_BOX, segmentation=[[10, 5, 30, 5]]), Outcome.AS_BOX, _BOX, False),
        (dict(bbox=_BOX, segmentation=[[1e9, 5, 30, 5, 9, 9]]), Outcome.AS_BOX, _BOX, False),
        (
            dict(bbox=_BOX, segmentation=dict(size=[9, 9], counts=[81])),
            Outcome.AS_BOX,
            _BOX,
            False,
        ),
        (dict(bbox=_BOX, segmentation=[_POLYGON, [1, 1]]), Outcome.IN_PART, _BOX, True),
        (
            dict(bbox=_BOX, segmentation=[[60, 5, 80, 5, 80, 35, 60, 35]]),
            Outcome.KEPT,
            _BOX,
            True,
        ),
    ],
)
def test_each_line_says_what_became_of_its_object(
    tmp_path: Path, entry: dict, outcome: Outcome, box: list | None, has_mask: bool
):
    labels = read(coco(tmp_path, entry))
    (problem,) = labels.problems
    assert problem.outcome is outcome
    (line,) = summary(labels)
    assert str(outcome) in line
    found = [(item.box, item.segmentation is not None) for item in others(labels)]
    assert found == ([] if box is None else [(tuple(box), has_mask)])


@pytest.mark.parametrize(
    ('fifth', 'boxes', 'note'),
    [
        ((0.93, 0.4, 1), [(20, 10, 20, 10)] * 3, '3 boxes of five numbers: corner and size, with'),
        ((0.93, 0.4, 30), [(20, 10, 20, 10)] * 3, '3 boxes of five numbers: corner and size, with'),
        ((0, 90, -90), [(10, 5, 20, 10), (15, 0, 10, 20)], '3 boxes of five numbers: centre, size'),
        ((90,), [(15, 0, 10, 20)], '1 box of five numbers: centre, size and angle in degrees'),
        (
            (0, math.pi / 2),
            [(10, 5, 20, 10), (15, 0, 10, 20)],
            '2 boxes of five numbers: centre, size and angle in radians',
        ),
    ],
)
def test_a_fifth_number_is_a_score_or_an_angle(
    tmp_path: Path, fifth: tuple, boxes: list, note: str
):
    labels = read(coco(tmp_path, *(dict(bbox=[20, 10, 20, 10, value]) for value in fifth)))
    found = [tuple(np.round(item.box, 6)) for item in others(labels)]
    assert list(dict.fromkeys(found)) == list(dict.fromkeys(boxes))
    assert note in labels.notes[0]


def test_outcomes_of_one_kind_have_a_line_each(tmp_path: Path):
    short = [1, 1]
    root = coco(
        tmp_path,
        dict(bbox=_BOX, segmentation=[short]),
        dict(bbox=[11, 5, 20, 30], segmentation=[_POLYGON, short]),
    )
    assert len(summary(read(root))) == 2


@pytest.mark.parametrize(
    ('flags', 'counted'),
    [
        (dict(iscrowd=1), '1 iscrowd'),
        (dict(ignore=True), '1 ignore'),
        (dict(iscrowd='1'), '1 iscrowd'),
        (dict(iscrowd='0', ignore='0.0'), ''),
        (dict(iscrowd=None), ''),
    ],
)
def test_regions_that_do_not_count_are_counted_by_their_word(
    tmp_path: Path, flags: dict, counted: str
):
    labels = read(coco(tmp_path, dict(bbox=_BOX) | flags))
    assert ignored_regions(labels) == counted
    assert [bool(item.ignored) for item in others(labels)] == [bool(counted)]


@pytest.mark.parametrize(
    ('change', 'why'),
    [
        (lambda content: content.pop('categories'), '"categories" is missing'),
        (lambda content: content.update(annotations={}), '"annotations" is not a list'),
    ],
)
def test_the_list_that_a_file_lacks_is_named(tmp_path: Path, change: Callable, why: str):
    file = coco(tmp_path) / 'labels.json'
    content = json.loads(file.read_text())
    (tmp_path / 'other.json').write_text(json.dumps(content))
    change(content)
    file.write_text(json.dumps(content | dict(info=dict(categories=1))))
    (problem,) = read(tmp_path).problems
    assert problem.detail == why
