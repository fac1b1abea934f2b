"""Masks drawn from COCO files, compared with hand-drawn ones."""

import re
from typing import Any

import numpy as np
import pytest
from pycocotools import mask as coco

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.masks import BROKEN, draw_mask, run_lengths, usable

IMAGE = dict(id=1, file_name='a.jpg', height=6, width=8)
LABELS = {7: 1, 9: 2}


def _rectangle(left: int, top: int, right: int, bottom: int) -> list[list[float]]:
    return [[left, top, right, top, right, bottom, left, bottom]]


def _object(number: int, category: int, mask: Any, **others: object) -> dict:
    return dict(id=number, image_id=1, category_id=category, segmentation=mask, **others)


@pytest.mark.parametrize('turned', [False, True])
def test_small_objects_are_drawn_over_large_ones_whatever_their_order(turned: bool):
    small, large = _rectangle(1, 1, 3, 3), _rectangle(0, 0, 8, 6)
    objects = [_object(1, 7, small), _object(2, 9, large)]
    pixels = draw_mask(IMAGE, objects[::-1] if turned else objects, LABELS)
    assert (pixels[1:3, 1:3] == 1).all() and (pixels == 2).sum() == 48 - 4


def test_objects_are_drawn_over_crowds():
    crowd = _object(1, 7, _rectangle(0, 0, 2, 2), iscrowd=1)
    pixels = draw_mask(IMAGE, [_object(2, 9, _rectangle(0, 0, 8, 3)), crowd], LABELS)
    assert (pixels[:3] == 2).all() and not (pixels == 255).any()
    assert (draw_mask(IMAGE, [crowd], LABELS)[:2, :2] == 255).all()


@pytest.mark.parametrize('compressed', [False, True])
def test_run_lengths_are_drawn(compressed: bool):
    wanted = np.zeros((6, 8), np.uint8)
    wanted[2:5, 3] = 1
    if compressed:
        mask = coco.encode(np.asfortranarray(wanted))
        mask['counts'] = mask['counts'].decode()
    else:
        # Column by column: three columns and two rows of nothing, three pixels, the rest.
        mask = dict(size=[6, 8], counts=[20, 3, 25])
    assert (draw_mask(IMAGE, [_object(1, 7, mask)], LABELS) == wanted).all()


def test_an_object_of_several_polygons_is_one():
    mask = [*_rectangle(0, 0, 2, 2), *_rectangle(4, 0, 6, 2)]
    pixels = draw_mask(IMAGE, [_object(1, 9, mask)], LABELS)
    assert (pixels == 2).sum() == 8


_CORNERS = [(1, 1), (3, 1), (3, 3), (1, 3)]


@pytest.mark.parametrize(
    ('mask', 'parts'),
    [
        ([[str(value) for point in _CORNERS for value in point]], 1),
        ([value for point in _CORNERS for value in point], 1),
        ([str(value) for point in _CORNERS for value in point], 1),
        ([list(point) for point in _CORNERS], 1),
        ([[list(point) for point in _CORNERS]] * 2, 2),
        ([[list(point) for point in _CORNERS], *_rectangle(1, 1, 3, 3)], 2),
    ],
    ids=['text', 'flat', 'flat text', 'points', 'lists of points', 'mixed'],
)
def test_polygons_are_read_however_their_numbers_are_nested(mask: list, parts: int):
    assert usable(mask, (8, 6)) == (_rectangle(1, 1, 3, 3) * parts, None, '')


@pytest.mark.parametrize(
    'mask',
    ['1,1,3,1,3,3', 7, [dict(x=x, y=y) for x, y in _CORNERS] * 2, [[_rectangle(1, 1, 3, 3)]]],
)
def test_what_is_no_polygon_is_said(mask: object):
    found, rule, why = usable(mask, (8, 6))
    assert found is None and rule is BROKEN and re.search('neither polygons|not a list of', why)


def test_an_image_without_objects_is_background():
    assert not draw_mask(IMAGE, [], LABELS).any()


@pytest.mark.parametrize(
    ('mask', 'words'),
    [
        (dict(counts=[48], size=[8, 6]), r'its size is \[8, 6\], that of the image \[6, 8\]'),
        (dict(counts=[4], size=[6, 8]), 'it counts 4 pixels of 48'),
    ],
)
def test_what_cannot_be_drawn_is_named(mask: dict, words: str):
    with pytest.raises(UserError, match=f'id 3 in a.jpg cannot be drawn: {words}'):
        draw_mask(IMAGE, [_object(3, 7, mask)], LABELS)


def _encoded(pixels: np.ndarray) -> dict:
    return coco.encode(np.asfortranarray(pixels.astype(np.uint8)))


@pytest.mark.parametrize('share', [0, 0.01, 0.3, 0.9, 1])
@pytest.mark.parametrize('size', [(1, 1), (7, 5), (40, 300)])
def test_compressed_run_lengths_count_each_pixel(share: float, size: tuple[int, int]):
    pixels = np.random.default_rng(0).random(size) < share
    mask = _encoded(pixels)
    assert coco.area(run_lengths(mask, *size)) == pixels.sum()
    as_text = dict(mask, counts=mask['counts'].decode())
    assert coco.area(run_lengths(as_text, *size)) == pixels.sum()
    # pycocotools would fill the rest with uninitialised memory.
    for short in (mask['counts'][:-1], b'', mask['counts'] + b'1'):
        with pytest.raises(ValueError, match='it counts|truncated'):
            run_lengths(dict(mask, counts=short), *size)


def test_runs_of_negative_length_are_refused():
    # 10, -5 and 20 pixels: as many as the image has.
    with pytest.raises(ValueError, match='Invalid RLE'):
        run_lengths(dict(size=[5, 5], counts=':Kd0'), 5, 5)
