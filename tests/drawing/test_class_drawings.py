"""Maps of classes in their colours, with their names."""

import numpy as np
import pytest

from ptnt_mm.utils.colours import class_colours
from ptnt_mm.workbench.drawing.class_drawings import draw_names, paint_map, write_lines

COLOURS = np.array([(10, 20, 30), (250, 200, 100)], dtype=np.uint8)


NAMES = ('rest', 'thing')


def sign(labels: np.ndarray, names: tuple[str, str] = NAMES) -> tuple[int, int, int, int] | None:
    """Left, top, right and bottom of the name of class 1, if it is drawn."""
    image = np.full((*labels.shape, 3), 7, np.uint8)
    drawn = draw_names(image, labels, names.__getitem__, COLOURS)
    found = np.argwhere((drawn == COLOURS[1, ::-1]).all(axis=-1))
    return (*found.min(axis=0)[::-1], *found.max(axis=0)[::-1]) if len(found) else None


@pytest.mark.parametrize('scale', [1, 13])
def test_names_stand_where_a_class_is_widest(scale: int):
    labels = np.zeros((100 * scale, 200 * scale), dtype=np.int64)
    labels[20 * scale : 60 * scale, 130 * scale : 180 * scale] = 1
    # A long thin arm would shift the centre of mass.
    labels[40 * scale : 42 * scale, : 130 * scale] = 1
    left, top, right, bottom = (side / scale for side in sign(labels))
    assert (top + bottom) / 2 == pytest.approx(40, abs=2)
    assert 130 < left < right < 180 and (left + right) / 2 == pytest.approx(155, abs=6)


def test_no_name_where_there_is_no_room():
    labels = np.zeros((100, 200), dtype=np.int64)
    labels[50:54] = 1
    assert sign(labels) is None
    labels[50:74] = 1
    assert sign(labels) is not None
    pixel = np.full((1, 1, 3), 9, np.uint8)
    np.testing.assert_array_equal(
        draw_names(pixel, np.ones((1, 1), int), NAMES.__getitem__, COLOURS), pixel
    )


def test_names_stay_inside():
    labels = np.zeros((60, 120), dtype=np.int64)
    labels[:, 100:] = 1
    left, _, right, _ = sign(labels, ('', 'a longer name'))
    assert right == 119 and 0 < left < 60


def test_letters_that_are_not_ascii():
    labels = np.ones((60, 200), dtype=np.int64)
    image = np.full((60, 200, 3), 7, np.uint8)
    drawn = [draw_names(image, labels, lambda _, t=t: t, COLOURS) for t in ('Ж', 'Ω', 'ű', '?')]
    assert len({picture.tobytes() for picture in drawn}) == 4


IMAGE = np.full((8, 8, 3), 100, np.uint8)
NAMED = dict(classes=('rest', 'road'), palette=[(10, 20, 30), (250, 200, 150)])


def test_colours_of_the_data_set():
    labels = np.zeros((8, 8), np.int64)
    labels[4:] = 1
    painted = paint_map(IMAGE, labels, NAMED, 2)
    assert painted[0, 0].tolist() == [65, 60, 55] and painted[-1, -1].tolist() == [125, 150, 175]


def test_ours_for_classes_without():
    labels = np.full((8, 8), 2)
    for meta in (NAMED, dict(classes=None, palette='random')):
        painted = paint_map(IMAGE, labels, meta, 3)
        expected = (100 + np.array(class_colours(3)[2][::-1])) / 2
        assert abs(painted[0, 0] - expected).max() <= 1


def test_what_is_no_class_stays_as_it_is():
    image = np.random.default_rng(0).integers(256, size=(90, 120, 3), dtype=np.uint8)
    labels = np.zeros((90, 120), np.int64)
    labels[:, 50:80], labels[:, 80:] = 255, -1
    painted = paint_map(image, labels, NAMED, 2)
    np.testing.assert_array_equal(painted[:, 50:], image[:, 50:])
    assert (painted[:, :50] != image[:, :50]).any(axis=-1).mean() > 0.9


def written(lines: int, size: tuple[int, int]) -> np.ndarray:
    """Rows and columns of a white picture of (height, width) that are covered by lines."""
    image = np.full((*size, 3), 255, np.uint8)
    return (write_lines(image, [f'label {i} 99.9 %' for i in range(lines)]) == 0).all(axis=-1)


def test_many_lines_have_room():
    few, more, many, crowd = (written(lines, (400, 640)) for lines in (5, 20, 60, 120))
    assert few[:, 0].sum() // 24 == 5, 'letters of 16 pixels'
    rows = more[:, 0].sum() // 24, more[:, 200].sum() // 24
    assert rows == (16, 4) or not more[100:, 200].any(), 'two columns'
    assert many[:, 0].sum() // 24 == 16 and many[:, 400:].any() and not many[300:, 500:].any()
    assert crowd[:, 0].sum() // 15 == 26, 'smaller letters'
    # Without room for all, the rest is counted: there are as many lines as fit.
    assert (written(500, (256, 256)) == written(900, (256, 256))).mean() > 0.99
