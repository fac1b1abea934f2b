"""Faults that real exports have are found, and unusual data is not taken for one."""

import pytest

from . import planted_boxes, planted_masks
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
