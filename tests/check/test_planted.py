"""Faults that real exports have are found, and unusual data is not taken for one."""

from pathlib import Path

import pytest

from . import planted_boxes, planted_masks, test_faults, test_mask_faults
from .spoilt import Demo, MaskDemo, counted


def _said(demo: Demo, *thorough: str) -> str:
    return '\n'.join(f'{one}\n{one.advice}' for one in counted(demo.findings(*thorough)))


@pytest.mark.parametrize('name', planted_boxes.DAMAGED)
def test_what_is_planted_is_found(demo: Demo, name: str):
    plant, words = planted_boxes.DAMAGED[name]
    plant(demo)
    said = _said(demo, 'images')
    assert words in said, said
    assert 'could not be checked' not in said


@pytest.mark.parametrize('name', planted_boxes.MASKS)
def test_what_is_planted_in_masks_of_objects_is_found(demo: Demo, name: str):
    plant, words = planted_boxes.MASKS[name]
    demo.name = 'demo_mask_rcnn_ptnt_ti'
    plant(demo)
    said = _said(demo, 'images')
    assert words in said, said
    assert 'could not be checked' not in said


@pytest.mark.parametrize('name', planted_boxes.SOUND)
def test_nothing_is_found_in_what_is_unusual(demo: Demo, name: str):
    planted_boxes.SOUND[name](demo)
    assert _said(demo, 'images') == ''


@pytest.mark.parametrize('name', planted_boxes.SOUND_MASKS)
def test_nothing_is_found_in_unusual_masks_of_objects(demo: Demo, name: str):
    demo.name = 'demo_mask_rcnn_ptnt_ti'
    planted_boxes.SOUND_MASKS[name](demo)
    assert _said(demo, 'images') == ''


@pytest.mark.parametrize('name', planted_masks.DAMAGED)
def test_what_is_planted_in_masks_is_found(masks: MaskDemo, name: str):
    plant, words = planted_masks.DAMAGED[name]
    plant(masks)
    said = _said(masks, 'images', 'masks')
    assert words in said, said
    assert 'could not be checked' not in said


@pytest.mark.parametrize('name', planted_masks.SOUND)
def test_nothing_is_found_in_unusual_masks(masks: MaskDemo, name: str):
    planted_masks.SOUND[name](masks)
    assert _said(masks, 'images', 'masks') == ''


@pytest.mark.parametrize('name', planted_boxes.MISSED)
def test_what_no_check_looks_for(demo: Demo, name: str):
    # Whoever makes one of these be found moves it, and mends the table in docs/check.md.
    planted_boxes.MISSED[name](demo)
    assert _said(demo, 'images') == ''


@pytest.mark.parametrize('name', planted_boxes.MISSED_MASKS)
def test_what_no_check_looks_for_in_masks_of_objects(demo: Demo, name: str):
    demo.name = 'demo_mask_rcnn_ptnt_ti'
    planted_boxes.MISSED_MASKS[name](demo)
    assert _said(demo, 'images') == ''


@pytest.mark.parametrize('name', planted_masks.MISSED)
def test_what_no_check_looks_for_in_masks(masks: MaskDemo, name: str):
    planted_masks.MISSED[name](masks)
    assert _said(masks, 'images', 'masks') == ''


def test_the_table_in_the_docs_counts_what_is_planted():
    """Each row's faults and sets are tested one by one: here and in the two older files."""
    boxes, masks = planted_boxes, planted_masks
    rows = (
        ('Settings and boxes', test_faults.FAULTS, {}, {}),
        ('Masks of objects', test_faults.MASK_FAULTS, {}, {}),
        ('Settings and masks of classes', test_mask_faults.FAULTS, {}, {}),
        ('Boxes of real exports', boxes.DAMAGED, boxes.MISSED, boxes.SOUND),
        ('Masks of objects of real exports', boxes.MASKS, boxes.MISSED_MASKS, boxes.SOUND_MASKS),
        ('Masks of classes of real exports', masks.DAMAGED, masks.MISSED, masks.SOUND),
    )
    text = ' '.join((Path(__file__).parents[2] / 'docs' / 'check.md').read_text().split())
    for name, found, missed, sound in rows:
        planted = len(found) + len(missed)
        row = f'| {name} | {planted} | {len(found)} | {len(missed)} | {len(sound)} | 0 |'
        assert row in text, row
    for name in (*boxes.MISSED, *boxes.MISSED_MASKS, *masks.MISSED):
        assert name in text, f'docs/check.md does not say that this is missed: {name}'
