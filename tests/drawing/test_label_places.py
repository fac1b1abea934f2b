"""Labels lie over no other label or box where there is room."""

import cv2
import numpy as np
import pytest
import torch

from .conftest import Draw

COLOURS = [(200, 0, 0), (0, 0, 200)]
GREY = 128


def places(draw_objects: Draw, *boxes: tuple, size: tuple[int, int] = (100, 200)) -> list[tuple]:
    """Left, top, right and bottom of the label of each box, on a picture (height, width)."""
    meta = dict(classes=('some name', 'some name'), palette=COLOURS)
    labels = torch.arange(len(boxes))
    picture = draw_objects(size, meta, bboxes=torch.tensor(boxes), labels=labels)
    # Without the lines of boxes, which are one pixel wide.
    drawn = (picture != GREY).any(axis=-1).astype(np.uint8)
    labels = cv2.morphologyEx(drawn, cv2.MORPH_OPEN, np.ones((3, 3), np.uint8))
    found = [np.argwhere((picture == c).all(axis=-1) & (labels > 0)) for c in COLOURS[: len(boxes)]]
    return [(*at.min(axis=0)[::-1].tolist(), *at.max(axis=0)[::-1].tolist()) for at in found]


@pytest.mark.parametrize(
    ('box', 'edges'),
    [
        ((50.0, 40, 120, 80), dict(left=50, bottom=40)),  # above
        # Below: above is no room, and in it, it covers the object.
        ((50.0, 0, 120, 40), dict(left=50, top=40)),
        ((0.0, 0, 200, 100), dict(left=0, bottom=99)),  # in it: there is room nowhere else
        ((190.0, 40, 199, 80), dict(right=199, bottom=40)),  # moved into the picture
    ],
)
def test_a_single_label(box: tuple, edges: dict[str, int], draw_objects: Draw):
    ((left, top, right, bottom),) = places(draw_objects, box)
    found = dict(left=left, top=top, right=right, bottom=bottom)
    assert {edge: found[edge] for edge in edges} == pytest.approx(edges, abs=1)
    assert right - left > 30 and 6 < bottom - top < 12


def test_two_boxes_at_one_place_have_labels_side_by_side(draw_objects: Draw):
    second, first = places(draw_objects, *[(20.0, 40, 160, 80)] * 2)
    assert (first[0], first[3]) == pytest.approx((20, 40), abs=1), 'the last has the best place'
    assert second[0] > first[2] and second[3] == first[3]


def test_a_label_avoids_the_box_above(draw_objects: Draw):
    label, _ = places(draw_objects, (50.0, 40, 120, 80), (50.0, 10, 95, 39))
    assert (label[0], label[1]) == pytest.approx((50, 80), abs=1)


def test_a_label_larger_than_the_picture_starts_in_its_corner(draw_objects: Draw):
    assert places(draw_objects, (1.0, 1, 5, 5), size=(8, 30)) == [(0, 0, 29, 7)]
    meta = dict(classes=('MMMMMMMM',), palette=COLOURS[:1])
    box = dict(bboxes=torch.tensor([[1.0, 1, 5, 5]]), labels=torch.tensor([0]))
    picture = draw_objects((8, 30), meta, **box)
    assert (picture[:, 0] == COLOURS[0]).all(), 'the edge, and no letter that is cut'
