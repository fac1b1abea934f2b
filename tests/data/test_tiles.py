"""Windows of a large image, and the objects of all of them merged."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.tiles import Found, Patch, Tiling, merge

TILING = Tiling(64, 0.25)


@given(
    width=st.integers(1, 700),
    height=st.integers(1, 700),
    tile=st.integers(32, 300),
    overlap=st.floats(0, 0.9),
)
def test_every_pixel_is_covered_and_an_object_of_the_overlap_is_whole_somewhere(
    width: int, height: int, tile: int, overlap: float
):
    tiling = Tiling(tile, overlap)
    windows = tiling.windows(width, height)
    for axis, length in ((0, width), (1, height)):
        spans = sorted({(w[axis], w[axis + 2]) for w in windows})
        assert spans[0][0] == 0 and spans[-1][1] == length
        assert all(last - first == min(tile, length) for first, last in spans)
        for (_, end), (start, _) in zip(spans, spans[1:], strict=False):
            assert end - start >= tiling.shared
    assert len(set(windows)) == len(windows)


@pytest.mark.parametrize(
    'values', [(0, 0.2), (31, 0.2), (64.0, 0.2), (True, 0.2), (64, 1), (64, -0.1), (64, 'x')]
)
def test_values_out_of_range_are_refused(values: tuple):
    with pytest.raises(UserError, match=f'={values[0] if values[1] == 0.2 else values[1]!r}'):
        Tiling(*values)


def seen(objects: list[tuple], size: tuple[int, int], masks: bool = False) -> list[Found]:
    """The parts of objects (box, label) that each window sees, as a perfect detector finds them."""
    parts = []
    for k, window in enumerate(TILING.windows(*size)):
        boxes, labels = [], []
        for box, label in objects:
            box = np.concatenate([np.maximum(box[:2], window[:2]), np.minimum(box[2:], window[2:])])
            if (box[2:] - box[:2] >= 3).all():
                boxes.append(box)
                labels.append(label)
        boxes = np.array(boxes, float).reshape(-1, 4)
        patches = [
            Patch(np.ones((int(y2 - y1), int(x2 - x1)), bool), int(x1), int(y1))
            for x1, y1, x2, y2 in boxes
        ]
        scores = np.linspace(0.9, 0.5, len(boxes)) - 0.01 * k
        parts.append(
            Found(window, boxes, scores, np.array(labels, int), patches if masks else None)
        )
    return parts


ACROSS = {
    'inside one tile': (4, 4, 20, 20),
    'in the overlap of two': (50, 10, 60, 20),
    'across two': (30, 10, 90, 30),
    'across four': (30, 30, 90, 90),
    'longer than a tile': (10, 20, 150, 30),
}


@pytest.mark.parametrize('box', ACROSS.values(), ids=ACROSS)
@pytest.mark.parametrize('masks', [False, True])
def test_an_object_across_tiles_is_found_once(box: tuple, masks: bool):
    found = merge(seen([(box, 0)], (160, 112), masks), 160, 112)
    np.testing.assert_array_equal(found.boxes, [box])
    if masks:
        (patch,) = found.masks
        assert (patch.left, patch.top) == box[:2] and patch.pixels.all()
        assert patch.pixels.shape == (box[3] - box[1], box[2] - box[0])


def test_neighbours_and_other_classes_are_not_merged():
    boxes = [(50, 10, 56, 20), (56, 10, 62, 20), (30, 40, 90, 60), (36, 44, 88, 56)]
    objects = [(boxes[0], 0), (boxes[1], 0), (boxes[2], 0), (boxes[3], 1)]
    found = merge(seen(objects, (160, 112)), 160, 112)
    assert sorted(map(tuple, found.boxes)) == sorted(boxes)
    assert found.labels[found.boxes.tolist().index(list(boxes[3]))] == 1


def test_nothing_is_merged_to_nothing():
    found = merge(seen([], (160, 112)), 160, 112)
    assert len(found.boxes) == len(found.scores) == len(found.labels) == 0
