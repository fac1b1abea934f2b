"""Configs stored in checkpoints are parsed as data."""

from pathlib import Path

import pytest

from ptnt_mm.workbench.config.read import read_config
from ptnt_mm.workbench.config.stored import stored_config


@pytest.mark.parametrize('text', ['not python (', 3, 'a = dict(**b)', 'a = {[]: 1}', 'a = -b'])
def test_a_stored_text_that_is_no_config_holds_nothing(text: object):
    assert stored_config(text) == {}


def test_a_stored_config_is_read_as_data_and_never_run(tmp_path: Path):
    canary = tmp_path / 'canary'
    text = f"""
import pathlib
pathlib.Path({str(canary)!r}).touch()
model = dict(backbone=dict(norm_eval=True, dims=[1, (2, -3)]), names={{'a': None}})
evil = dict(a=pathlib.Path({str(canary)!r}).touch())
lr = 0.1
"""
    settings = stored_config(text)
    assert settings.model.backbone.norm_eval is True
    assert settings.model.backbone.dims == [1, (2, -3)]
    assert settings.lr == 0.1
    assert 'evil' not in settings
    assert not canary.exists()


def test_a_stored_config_survives_mmengines_own_writing():
    config = read_config('retinanet_ptnt_s_1x')
    stored = stored_config(config.pretty_text)
    assert stored.model.to_dict() == config.to_dict()['model']
