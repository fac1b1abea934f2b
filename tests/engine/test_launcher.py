"""Distributed training on a CPU."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS
from toy import ToyModel, quick, toy_config

from ptnt_mm import api
from ptnt_mm.utils.errors import UserError


@MODELS.register_module()
class WithNorms(ToyModel):
    """Takes settings of norms, as models of the hosts do."""

    def __init__(self, **settings: object):
        super().__init__()


def test_an_unknown_launcher_is_named(tmp_path: Path):
    with pytest.raises(UserError, match="'torchrun'.*'pytorch'"):
        api.train(toy_config(tmp_path), launcher='torchrun')


@pytest.fixture
def launch(tmp_path: Path, monkeypatch) -> Iterator:
    """Train in the only process that torchrun started; return the model's settings."""
    monkeypatch.setattr('mmengine.device.utils.DEVICE', 'cpu')
    for name in ('RANK', 'LOCAL_RANK'):
        monkeypatch.setenv(name, '0')
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group('gloo', store=store, rank=0, world_size=1)

    def launch(**model: object) -> Config:
        config = quick(toy_config(tmp_path, 1, model=dict(type='WithNorms', **model)))
        config.experiment_name = str(tmp_path)
        return api.train(config, launcher='pytorch').cfg.model

    yield launch
    torch.distributed.destroy_process_group()


def test_sync_bn_becomes_bn_and_this_is_reported(launch, caplog):
    kinds = ['SyncBN', 'mmcv.SyncBN', torch.nn.SyncBatchNorm, 'GN']
    heads = [dict(norm_cfg=dict(type=kind, requires_grad=True)) for kind in kinds]
    model = launch(neck=dict(norm_cfg=dict(type='SyncBN')), heads=heads)
    assert model.neck.norm_cfg == dict(type='BN')
    assert [head.norm_cfg.type for head in model.heads] == ['BN', 'BN', 'BN', 'GN']
    assert all(head.norm_cfg.requires_grad for head in model.heads)
    assert caplog.text.count('each process has a separate BN') == 1


def test_other_models_are_left_as_they_are(launch, caplog):
    model = dict(head=dict(norm_cfg=dict(type='BN')), sizes=[1, 2])
    assert launch(**model) == dict(model, type='WithNorms')
    assert 'separate BN' not in caplog.text
