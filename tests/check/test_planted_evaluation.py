"""Faults in validation and test are found before training; unusual settings are not reported."""

from pathlib import Path

import pytest

from ptnt_mm.utils.findings import Finding
from ptnt_mm.workbench.check.inspection import check

from .planted_evaluation import CORRECT, FAULTS, Change
from .settings_demo import SPLITS, config_on_demo
from .spoilt import assert_one_names, counted


@pytest.fixture
def found(made: Path, crops: Path):
    """Check a changed config; return the errors and warnings."""

    def check_changed(
        name: str, change: Change, splits: tuple[str, ...] = SPLITS, thorough: bool = False
    ) -> list[Finding]:
        config = config_on_demo(name, made, crops)
        change(config)
        return counted(check(config, splits, thorough=thorough))

    return check_changed


@pytest.mark.parametrize('name', FAULTS)
def test_what_is_planted_is_found(name: str, found):
    config, change, severity, where, value = FAULTS[name]
    # Without training, which takes longer; only the thorough check tries test-time augmentation.
    findings = found(config, change, ('val', 'test'), thorough='TTA' in name)
    assert_one_names(findings, severity, where, value)


@pytest.mark.parametrize('name', CORRECT)
def test_nothing_is_found_in_what_is_sound(name: str, found):
    assert found(*CORRECT[name]) == []
