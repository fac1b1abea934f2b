"""Faults from real exports are found, and unusual data is not reported."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from ptnt_mm.check.failed_steps import NOT_COMPLETED

from . import (
    planted_boxes,
    planted_evaluation,
    planted_masks,
    test_classification,
    test_faults,
    test_mask_faults,
    test_rules,
)
from .spoilt import Demo, MaskDemo, Plant, counted

MASK_RCNN = 'demo_mask_rcnn_ptnt_ti'


def _cases(tables: dict[str, Mapping]) -> list:
    """Planted faults by subject and name."""
    return [
        pytest.param(kind, planted, id=f'{kind}: {name}')
        for kind, table in tables.items()
        for name, planted in table.items()
    ]


def _said(request: pytest.FixtureRequest, kind: str, plant: Plant) -> str:
    """Change a copy of the demo set; return the resulting errors and warnings."""
    demo: Demo | MaskDemo = request.getfixturevalue('masks' if kind == 'class masks' else 'demo')
    if kind == 'object masks':
        demo.name = MASK_RCNN
    plant(demo)
    thorough = ('images', 'masks') if kind == 'class masks' else ('images',)
    return '\n'.join(f'{one}\n{one.advice}' for one in counted(demo.findings(*thorough)))


DAMAGED = {
    'boxes': planted_boxes.DAMAGED,
    'object masks': planted_boxes.MASKS,
    'class masks': planted_masks.DAMAGED,
}
CORRECT = {
    'boxes': planted_boxes.CORRECT,
    'object masks': planted_boxes.CORRECT_MASKS,
    'class masks': planted_masks.CORRECT,
}
# To make one of these detectable, move it, and update the table in docs/check.md.
MISSED = {
    'boxes': planted_boxes.MISSED,
    'object masks': planted_boxes.MISSED_MASKS,
    'class masks': planted_masks.MISSED,
}


@pytest.mark.parametrize(('kind', 'planted'), _cases(DAMAGED))
def test_what_is_planted_is_found(request, kind: str, planted: tuple[Plant, str]):
    plant, words = planted
    said = _said(request, kind, plant)
    assert words in said, said
    assert NOT_COMPLETED not in said


@pytest.mark.parametrize(('kind', 'planted'), _cases(CORRECT))
def test_nothing_is_found_in_what_is_unusual(request, kind: str, planted: Plant):
    assert _said(request, kind, planted) == ''


@pytest.mark.parametrize(('kind', 'planted'), _cases(MISSED))
def test_what_no_check_looks_for(request, kind: str, planted: Plant):
    assert _said(request, kind, planted) == ''


def test_the_table_in_the_docs_counts_what_is_planted():
    """Each row's faults and correct cases are tested one by one, here or in other files."""
    rows = [
        ('Settings and boxes', test_faults.FAULTS, {}, {}),
        ('Object masks', test_faults.MASK_FAULTS, {}, {}),
        ('Settings and class masks', test_mask_faults.FAULTS, {}, {}),
        ('Data and settings of classifiers', test_classification.FAULTS, {}, {}),
        ('Rules', test_rules.FAULTS, {}, test_rules.CORRECT),
        ('Evaluation and schedules', planted_evaluation.FAULTS, {}, planted_evaluation.CORRECT),
    ]
    for kind, name in zip(DAMAGED, ('Boxes', 'Object masks', 'Class masks'), strict=True):
        rows.append((f'{name} from real exports', DAMAGED[kind], MISSED[kind], CORRECT[kind]))
    text = ' '.join((Path(__file__).parents[2] / 'docs' / 'check.md').read_text().split())
    for name, found, missed, correct in rows:
        planted = len(found) + len(missed)
        row = f'| {name} | {planted} | {len(found)} | {len(missed)} | {len(correct)} | 0 |'
        assert row in text, row
        for fault in missed:
            assert fault in text, f'docs/check.md does not say that this is missed: {fault}'
