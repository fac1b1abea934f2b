"""Modes of training."""

import sys
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from ptnt_mm import api
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine import modes
from ptnt_mm.workbench.engine.modes import LOG_BACKENDS, log_to_package


@pytest.fixture(autouse=True)
def _all_installed(monkeypatch) -> None:
    for package in LOG_BACKENDS:
        monkeypatch.setitem(sys.modules, package, pytest)  # any module


@pytest.mark.parametrize('package', LOG_BACKENDS)
def test_a_backend_is_added_to_those_that_are_there(package: str):
    config = Config(
        dict(
            visualizer=dict(type='DetLocalVisualizer', vis_backends=[dict(type='LocalVisBackend')]),
            custom_hooks=[dict(type='Mine')],
        )
    )
    log_to_package(ConfigView(config), package)
    kinds = [backend['type'] for backend in config.visualizer.vis_backends]
    assert kinds == ['LocalVisBackend', LOG_BACKENDS[package]]
    assert config.visualizer.type == 'DetLocalVisualizer'
    assert [hook.type for hook in config.custom_hooks] == ['Mine', 'DrawValidationHook']
    log_to_package(ConfigView(config), package)
    assert len(config.visualizer.vis_backends) == len(config.custom_hooks) == 2


@pytest.mark.parametrize('server', [None, 'http://here:5000'])
def test_mlflow_gets_the_server_that_the_environment_names_now(monkeypatch, server: str | None):
    monkeypatch.delenv('MLFLOW_TRACKING_URI', raising=False)
    if server:
        monkeypatch.setenv('MLFLOW_TRACKING_URI', server)
    config = Config(dict())
    log_to_package(ConfigView(config), 'mlflow')
    assert config.visualizer.vis_backends[-1].tracking_uri == (server or 'sqlite:///mlflow.db')


def test_a_config_without_a_visualizer_keeps_its_scalars():
    config = Config(dict(visualizer=None))
    log_to_package(ConfigView(config), 'tensorboard')
    kinds = [backend['type'] for backend in config.visualizer.vis_backends]
    assert kinds == ['LocalVisBackend', 'TensorboardVisBackend']


def test_a_missing_package_is_one_line(monkeypatch, tmp_path: Path, capsys):
    monkeypatch.setitem(sys.modules, 'wandb', None)
    file = tmp_path / 'mine.py'
    file.write_text('model = train_dataloader = train_cfg = optim_wrapper = dict(a=1)\n')
    assert run('train', [str(file), '--log', 'wandb']) == 1
    said = 'error: --log wandb needs more packages: pip install wandb\n'
    assert capsys.readouterr().err == said


def test_modes_become_settings():
    config = Config(dict(auto_scale_lr=dict(base_batch_size=8), randomness=dict(seed=3)))
    modes.use_modes(ConfigView(config), deterministic=True, auto_scale_lr=True)
    assert config.randomness == dict(seed=3, deterministic=True) and config.auto_scale_lr.enable


@pytest.fixture
def _accelerator(monkeypatch):
    monkeypatch.setattr('mmengine.device.utils.DEVICE', 'cuda')


@pytest.mark.usefixtures('_accelerator')
@pytest.mark.parametrize(('supported', 'dtype'), [(True, 'bfloat16'), (False, 'float16')])
def test_mixed_precision_is_bfloat16_where_the_gpu_has_it(monkeypatch, supported, dtype):
    monkeypatch.setattr(torch.cuda, 'is_bf16_supported', lambda **_: supported)
    changed = Config(dict(optim_wrapper=dict(type='OptimWrapper')))
    modes.use_mixed_precision(changed)
    assert changed.optim_wrapper == dict(type='AmpOptimWrapper', dtype=dtype)


@pytest.mark.parametrize(
    ('flags', 'supported'),
    [
        ('flags : fpu avx2 avx512f avx512_bf16', True),
        ('flags : fpu avx512f amx_bf16 amx_tile', True),
        ('Features : fp asimd bf16 i8mm', True),
        ('flags : fpu avx2 avx512f avx512_fp16', False),
        (None, False),  # a system without this file
    ],
)
def test_processors_with_bfloat16(tmp_path: Path, flags: str | None, supported: bool):
    file = tmp_path / 'cpuinfo'
    if flags is not None:
        file.write_text(f'processor : 0\n{flags}\n')
    assert modes.cpu_has_bfloat16(file) == supported


@pytest.mark.skipif(torch.cuda.is_available(), reason='needs a machine without a GPU')
def test_mixed_precision_on_a_cpu_needs_bfloat16():
    wrapper = dict(type='AmpOptimWrapper', dtype='float16', loss_scale='dynamic')
    config = Config(dict(optim_wrapper=wrapper))
    if modes.cpu_has_bfloat16():
        modes.use_mixed_precision(config)
        assert config.optim_wrapper == dict(type='Bfloat16OptimWrapper')
    else:
        with pytest.raises(UserError, match='a processor that computes in bfloat16'):
            modes.use_mixed_precision(config)


@pytest.mark.usefixtures('_accelerator')
def test_sync_bn():
    config = Config()
    modes.use_modes(ConfigView(config), sync_bn=True)
    assert config.sync_bn == 'torch'


@pytest.mark.skipif(torch.cuda.is_available(), reason='needs a machine without a GPU')
@pytest.mark.parametrize(
    ('mode', 'words'),
    [
        (dict(sync_bn=True), '`sync_bn=True` needs an accelerator'),
        (dict(auto_scale_lr=True), 'base_batch_size'),
        (dict(log='wandbb'), "'wandbb'.*'wandb'"),
    ],
)
def test_invalid_modes_are_refused_from_python(tmp_path: Path, mode: dict, words: str):
    needed = ('model', 'train_dataloader', 'train_cfg', 'optim_wrapper')
    config = Config({name: {} for name in needed})
    with pytest.raises(UserError, match=words):
        api.train(config, tmp_path, **mode)


@pytest.mark.skipif(torch.cuda.is_available(), reason='needs a machine without a GPU')
def test_mixed_precision_of_a_config_is_refused_before_anything_is_written(tmp_path: Path):
    needed = ('model', 'train_dataloader', 'train_cfg')
    wrapper = dict(type='mmengine.AmpOptimWrapper')
    config = Config(dict({name: {} for name in needed}, optim_wrapper=wrapper))
    with pytest.raises(UserError, match='AmpOptimWrapper'):
        api.train(config, tmp_path / 'run')
    assert not (tmp_path / 'run').exists()
