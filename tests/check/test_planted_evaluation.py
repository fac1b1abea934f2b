"""Faults in validation and test are found before training; unusual settings are no fault."""

from pathlib import Path

import pytest
from mmengine.config import Config

from demo.crops import make_crops
from ptnt_mm.check.inspection import check

from .planted_evaluation import FAULTS, SOUND, Change
from .settings_demo import config_on_demo
from .spoilt import counted


@pytest.fixture(scope='session')
def crops(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('crops') / 'crops'
    make_crops(made, folder)
    return folder


@pytest.fixture
def found(made: Path, crops: Path):
    """Check a config with a change; the errors and warnings, in a text."""

    def check_changed(name: str, change: Change) -> str:
        for host in ('mmdet', 'mmseg', 'mmpretrain'):
            pytest.importorskip(host)
        config: Config = config_on_demo(name, made, crops)
        change(config)
        return '\n'.join(f'{one}\n{one.advice}' for one in counted(check(config, thorough=False)))

    return check_changed


@pytest.mark.parametrize('name', FAULTS)
def test_what_is_planted_is_found(name: str, found):
    config, change, words = FAULTS[name]
    assert words in found(config, change)


@pytest.mark.parametrize('name', SOUND)
def test_nothing_is_found_in_what_is_sound(name: str, found):
    assert found(*SOUND[name]) == ''
