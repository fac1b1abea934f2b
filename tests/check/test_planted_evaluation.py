"""Faults in validation and test are found before training; unusual settings are not reported.

A check builds a model and tries it, so one in four is tried by default, and all with ALL_FAULTS=1.
"""

import os
from pathlib import Path

import pytest
from mmengine.config import Config

from demo.crops import make_crops
from ptnt_mm.check.inspection import check

from .planted_evaluation import CORRECT, FAULTS, Change
from .settings_demo import config_on_demo
from .spoilt import counted

EVERY = 1 if os.environ.get('ALL_FAULTS') else 4


@pytest.fixture(scope='session')
def crops(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('crops') / 'crops'
    make_crops(made, folder)
    return folder


@pytest.fixture
def found(made: Path, crops: Path):
    """Check a changed config; return the errors and warnings as text."""

    def check_changed(name: str, change: Change, thorough: bool = False) -> str:
        for host in ('mmdet', 'mmseg', 'mmpretrain'):
            pytest.importorskip(host)
        config: Config = config_on_demo(name, made, crops)
        change(config)
        findings = counted(check(config, thorough=thorough))
        return '\n'.join(f'{finding}\n{finding.advice}' for finding in findings)

    return check_changed


@pytest.mark.parametrize('name', [*FAULTS][::EVERY])
def test_what_is_planted_is_found(name: str, found):
    config, change, words = FAULTS[name]
    # Only the thorough check tries test-time augmentation.
    assert words in found(config, change, thorough='TTA' in name)


@pytest.mark.parametrize('name', [*CORRECT][::EVERY])
def test_nothing_is_found_in_correct_cases(name: str, found):
    assert found(*CORRECT[name]) == ''
