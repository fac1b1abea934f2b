"""Faults from real exports are found, and unusual data is not reported."""

from collections.abc import Mapping

import pytest

from ptnt_mm.utils.findings import Finding, Severity

from . import (
    planted_boxes,
    planted_masks,
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
