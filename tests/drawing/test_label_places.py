"""Labels lie over no other label or box where there is room."""

import numpy as np
import pytest

from ptnt_mm.workbench.drawing.letters import overlaps, place_labels

ROOM, SIZE = (200, 100), (40, 10)


def place(*boxes: tuple[int, int, int, int], room: tuple[int, int] = ROOM) -> list[list[float]]:
    return place_labels(boxes, [SIZE] * len(boxes), room).tolist()


@pytest.mark.parametrize(
    ('box', 'expected'),
    [
        ((50, 40, 120, 80), (50, 30)),  # above
        ((50, 0, 120, 40), (50, 40)),  # below: above is no room, and in it, it covers the object
        ((0, 0, 200, 100), (0, 0)),  # in it: there is room nowhere else
        ((190, 40, 199, 80), (160, 30)),  # moved into the picture
    ],
)
def test_a_single_label(box: tuple[int, int, int, int], expected: tuple[int, int]):
    assert tuple(place(box)[0][:2]) == expected


def test_two_boxes_at_one_place_have_labels_side_by_side():
    places = np.array(place((20, 40, 160, 80), (20, 40, 160, 80)))
    assert overlaps(places[:1], places[1:]) == 0
    assert places[0].tolist() == [20, 30, 60, 40], 'the first has the best place'


def test_a_label_avoids_the_box_above():
    assert place((50, 40, 120, 80), (50, 10, 95, 39))[0] == [50, 80, 90, 90]


def test_crowds_stay_in_the_picture_and_none_is_an_empty_list():
    generator = np.random.default_rng(0)
    corners = generator.uniform(0, 100, (300, 2))
    boxes = np.concatenate([corners, corners + 30], axis=1)
    places = np.array(place(*boxes.tolist()))
    assert (places >= 0).all() and (places[:, 2:] <= ROOM).all()
    # A label larger than the picture starts in its corner.
    assert place((1, 1, 5, 5), room=(30, 8)) == [[0, 0, 40, 10]]
    assert place() == []


def test_overlaps():
    boxes = np.array([(0.0, 0, 4, 4), (2, 2, 6, 6), (4, 0, 5, 5)])
    assert overlaps(boxes, boxes).tolist() == [[16, 4, 0], [4, 16, 3], [0, 3, 5]]
