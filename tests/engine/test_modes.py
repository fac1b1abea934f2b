"""Flags of training that become settings."""

from collections.abc import Callable

import pytest
import torch
from mmengine.config import Config

from ptnt_mm.engine import modes
from ptnt_mm.engine.modes import scale_learning_rate, use_mixed_precision, use_sync_bn
from ptnt_mm.utils.errors import UserError


def config(**settings) -> Config:
    return Config(dict(optim_wrapper=dict(type='OptimWrapper'), **settings))


@pytest.fixture
def _accelerator(monkeypatch):
    monkeypatch.setattr(modes, 'get_device', lambda: 'cuda')


@pytest.mark.usefixtures('_accelerator')
@pytest.mark.parametrize(('supported', 'dtype'), [(True, 'bfloat16'), (False, 'float16')])
def test_mixed_precision_is_bfloat16_where_the_gpu_has_it(monkeypatch, supported, dtype):
    monkeypatch.setattr(torch.cuda, 'is_bf16_supported', lambda **_: supported)
    changed = config()
    use_mixed_precision(changed)
    assert changed.optim_wrapper == dict(type='AmpOptimWrapper', dtype=dtype)


@pytest.mark.usefixtures('_accelerator')
def test_mixed_precision_needs_an_optimizer():
    with pytest.raises(UserError, match='optim_wrapper'):
        use_mixed_precision(Config({}))


@pytest.mark.usefixtures('_accelerator')
def test_sync_bn():
    changed = config()
    use_sync_bn(changed)
    assert changed.sync_bn == 'torch'


@pytest.mark.parametrize(
    ('mode', 'flag'), [(use_mixed_precision, '--amp'), (use_sync_bn, '--sync-bn')]
)
def test_modes_that_need_an_accelerator(monkeypatch, mode: Callable, flag: str):
    monkeypatch.setattr(modes, 'get_device', lambda: 'cpu')
    before, changed = config(), config()
    with pytest.raises(UserError, match=f'^{flag} needs'):
        mode(changed)
    assert changed.to_dict() == before.to_dict()


@pytest.mark.parametrize('settings', [{}, dict(auto_scale_lr=dict(enable=False))])
def test_a_scaled_learning_rate_needs_the_batch_that_it_is_for(settings: dict):
    with pytest.raises(UserError, match='^--auto-scale-lr needs .*base_batch_size'):
        scale_learning_rate(config(**settings))
    changed = config(auto_scale_lr=dict(base_batch_size=16))
    scale_learning_rate(changed)
    assert changed.auto_scale_lr.enable
