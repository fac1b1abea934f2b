"""Maps of classes in their colours, with their names."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from ptnt_mm.utils.colours import class_colours

from .conftest import Draw

COLOURS = [(10, 20, 30), (250, 200, 100)]

NAMED = dict(classes=('rest', 'thing'), palette=COLOURS)

Sign = Callable[..., tuple[float, float, float, float] | None]


@pytest.fixture
def sign(draw_classes: Draw) -> Sign:
    """Left, top, right and bottom of the name of class 1, if it is drawn."""

    def sign(labels: np.ndarray, name: str = 'thing') -> tuple | None:
        black = np.zeros((*labels.shape, 3), np.uint8)
        drawn = draw_classes(black, NAMED | dict(classes=('', name)), pred_sem_seg=labels)
        found = np.argwhere((drawn == COLOURS[1]).all(axis=-1))
        return (*found.min(axis=0)[::-1], *found.max(axis=0)[::-1]) if len(found) else None

    return sign


@pytest.mark.parametrize('scale', [1, 7])
def test_names_stand_where_a_class_is_widest(scale: int, sign: Sign):
    labels = np.zeros((100 * scale, 200 * scale), dtype=np.int64)
    labels[20 * scale : 60 * scale, 130 * scale : 180 * scale] = 1
    # A long thin arm would shift the centre of mass.
    labels[40 * scale : 42 * scale, : 130 * scale] = 1
    left, top, right, bottom = (side / scale for side in sign(labels))
    assert (top + bottom) / 2 == pytest.approx(40, abs=2)
    assert 130 < left < right < 180 and (left + right) / 2 == pytest.approx(155, abs=6)


def test_no_name_where_there_is_no_room(sign: Sign, draw_classes: Draw):
    labels = np.zeros((100, 200), dtype=np.int64)
    labels[50:54] = 1
    assert sign(labels) is None
    labels[50:74] = 1
    assert sign(labels) is not None
    pixel = np.full((1, 1, 3), 9, np.uint8)
    drawn = draw_classes(pixel, NAMED, pred_sem_seg=np.full((1, 1), 255))
    np.testing.assert_array_equal(drawn, pixel)


def test_names_stay_inside(sign: Sign):
    labels = np.zeros((60, 120), dtype=np.int64)
    labels[:, 100:] = 1
    left, _, right, _ = sign(labels, 'a longer name')
    assert right == 119 and 0 < left < 60


def test_letters_that_are_not_ascii(draw_classes: Draw):
    labels = np.ones((60, 200), dtype=np.int64)
    image = np.full((60, 200, 3), 7, np.uint8)
    metas = (NAMED | dict(classes=('rest', name)) for name in ('Ж', 'Ω', 'ű', '?'))
    drawn = [draw_classes(image, meta, pred_sem_seg=labels) for meta in metas]
    assert len({picture.tobytes() for picture in drawn}) == 4


IMAGE = np.full((8, 8, 3), 100, np.uint8)


def test_colours_of_the_data_set(draw_classes: Draw):
    labels = np.zeros((8, 8), np.int64)
    labels[4:] = 1
    painted = draw_classes(IMAGE, NAMED, pred_sem_seg=labels)
    assert painted[0, 0].tolist() == [55, 60, 65] and painted[-1, -1].tolist() == [175, 150, 100]


@pytest.mark.parametrize('meta', [NAMED, dict(classes=None, palette='random')])
def test_ours_for_classes_without(meta: dict, draw_classes: Draw):
    painted = draw_classes(IMAGE, meta, number=3, pred_sem_seg=np.full((8, 8), 2))
    assert abs(painted[0, 0] - (100 + np.array(class_colours(3)[2])) / 2).max() <= 1


def test_what_is_no_class_stays_as_it_is(draw_classes: Draw):
    image = np.random.default_rng(0).integers(256, size=(90, 120, 3), dtype=np.uint8)
    labels = np.zeros((90, 120), np.int64)
    labels[:, 50:80], labels[:, 80:] = 255, -1
    painted = draw_classes(image, NAMED, pred_sem_seg=labels)
    np.testing.assert_array_equal(painted[:, 50:], image[:, 50:])
    assert (painted[:, :50] != image[:, :50]).any(axis=-1).mean() > 0.9


def test_an_image_of_one_row_is_not_enlarged_without_end(draw_classes: Draw):
    shown = dict(pred_score=torch.ones(1), pred_label=torch.zeros(1, dtype=torch.int64))
    for size, enlarged in (((1, 300), (13, 3900)), ((1, 9000), (2, 18000)), ((64, 64), (256, 256))):
        drawn = draw_classes(np.zeros((*size, 3), np.uint8), NAMED, 1, **shown)
        assert drawn.shape[:2] == enlarged


def test_many_lines_have_room(draw_classes: Draw):
    def written(lines: int, size: tuple[int, int]) -> np.ndarray:
        """Rows and columns of a white picture of (height, width) that are covered by lines."""
        image = np.full((*size, 3), 255, np.uint8)
        meta = dict(classes=tuple(f'label {i}' for i in range(lines)))
        shown = dict(pred_score=torch.ones(lines), pred_label=torch.arange(lines))
        return (draw_classes(image, meta, lines, **shown) == 0).all(axis=-1)

    few, more, many, crowd = (written(lines, (400, 640)) for lines in (5, 20, 60, 120))
    assert few[:, 0].sum() // 24 == 5, 'letters of 16 pixels'
    rows = more[:, 0].sum() // 24, more[:, 200].sum() // 24
    assert rows == (16, 4) or not more[100:, 200].any(), 'two columns'
    assert many[:, 0].sum() // 24 == 16 and many[:, 400:].any() and not many[300:, 500:].any()
    assert crowd[:, 0].sum() // 15 == 26, 'smaller letters'
    # Without room for all, the rest is counted: there are as many lines as fit.
    assert (written(500, (256, 256)) == written(900, (256, 256))).mean() > 0.99
