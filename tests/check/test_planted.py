"""Faults from real exports are found, and unusual data is not reported."""

from collections.abc import Mapping

import pytest
from repository import ROOT

from ptnt_mm.utils.findings import Finding, Severity

from . import (
    planted_boxes,
    planted_evaluation,
    planted_masks,
    test_classification,
    test_faults,
    test_mask_faults,
    test_rules,
)
from .spoilt import Demo, MaskDemo, Plant, assert_one_names, counted

MASK_RCNN = 'demo_mask_rcnn_ptnt_ti'


def _cases(tables: dict[str, Mapping]) -> list:
    """Planted faults by subject and name."""
    return [
        pytest.param(kind, planted, id=f'{kind}: {name}')
        for kind, table in tables.items()
        for name, planted in table.items()
    ]


def _findings(request: pytest.FixtureRequest, kind: str, plant: Plant) -> list[Finding]:
    """Change a copy of the demo set; return the resulting errors and warnings."""
    demo: Demo | MaskDemo = request.getfixturevalue('masks' if kind == 'class masks' else 'demo')
    if kind == 'object masks':
        demo.name = MASK_RCNN
    plant(demo)
    thorough = ('images', 'masks') if kind == 'class masks' else ('images',)
    return counted(demo.findings(*thorough))


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


@pytest.mark.parametrize(('kind', 'planted'), _cases(DAMAGED))
def test_what_is_planted_is_found(
    request: pytest.FixtureRequest, kind: str, planted: tuple[Plant, Severity, str, str]
):
    plant, severity, where, value = planted
    assert_one_names(_findings(request, kind, plant), severity, where, value)


@pytest.mark.parametrize(('kind', 'planted'), _cases(CORRECT))
def test_nothing_is_found_in_what_is_unusual(
    request: pytest.FixtureRequest, kind: str, planted: Plant
):
    assert _findings(request, kind, planted) == []


def test_the_table_in_the_docs_counts_what_is_planted():
    """Each row's faults and correct cases are tested one by one, here or in other files."""
    rows = [
        ('Settings and boxes', test_faults.FAULTS, {}),
        ('Object masks', test_faults.MASK_FAULTS, {}),
        ('Settings and class masks', test_mask_faults.FAULTS, {}),
        ('Data and settings of classifiers', test_classification.FAULTS, {}),
        ('Rules', test_rules.FAULTS, test_rules.CORRECT),
        ('Evaluation', planted_evaluation.FAULTS, planted_evaluation.CORRECT),
    ]
    for kind, name in zip(DAMAGED, ('Boxes', 'Object masks', 'Class masks'), strict=True):
        rows.append((f'{name} from real exports', DAMAGED[kind], CORRECT[kind]))
    text = ' '.join((ROOT / 'docs' / 'check.md').read_text().split())
    for name, faults, correct in rows:
        row = f'| {name} | {len(faults)} | {len(correct)} |'
        assert row in text, row
