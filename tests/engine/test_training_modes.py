"""Training modes that a flag enables."""

from pathlib import Path

import pytest
from mmengine.config import Config

from ptnt_mm.cli import train
from ptnt_mm.engine import training_modes
from ptnt_mm.engine.training_modes import LOG_BACKENDS, log_to_package
from ptnt_mm.utils.errors import UserError


@pytest.fixture(autouse=True)
def _all_installed(monkeypatch) -> None:
    monkeypatch.setattr(training_modes, 'find_spec', lambda name: name)


@pytest.mark.parametrize('package', LOG_BACKENDS)
def test_a_backend_is_added_to_those_that_are_there(package: str):
    config = Config(
        dict(
            visualizer=dict(type='DetLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')]),
            custom_hooks=[dict(type='Mine')],
        )
    )
    log_to_package(config, package)
    kinds = [backend['type'] for backend in config.visualizer.vis_backends]
    assert kinds == ['LocalVisBackend', LOG_BACKENDS[package]['type']]
    assert config.visualizer.type == 'DetLocalVisualizer'
    assert [hook.type for hook in config.custom_hooks] == ['Mine', 'DrawValidationHook']
    log_to_package(config, package)
    assert len(config.visualizer.vis_backends) == 2


def test_a_config_without_a_visualizer_keeps_its_scalars():
    config = Config(dict(visualizer=None))
    log_to_package(config, 'tensorboard')
    kinds = [backend['type'] for backend in config.visualizer.vis_backends]
    assert kinds == ['LocalVisBackend', 'TensorboardVisBackend']


def test_a_missing_package_is_one_line(monkeypatch, tmp_path: Path, capsys):
    monkeypatch.setattr(training_modes, 'find_spec', lambda name: None)
    file = tmp_path / 'mine.py'
    file.write_text('')
    assert train.main([str(file), '--log', 'wandb']) == 1
    said = 'error: --log wandb: wandb is not installed: pip install wandb\n'
    assert capsys.readouterr().err == said


def test_an_unknown_package_is_named():
    with pytest.raises(UserError, match="'wandbb'.*'wandb'"):
        log_to_package(Config(), 'wandbb')
