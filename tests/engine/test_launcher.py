"""Distributed training on a CPU."""

import logging

import pytest
import torch
from mmengine.config import Config

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.engine.launcher import choose_launcher


def test_an_unknown_launcher_is_named():
    with pytest.raises(UserError, match="'torchrun'.*'pytorch'"):
        choose_launcher(Config(), 'torchrun')


def launched(monkeypatch, rank: int, model: dict) -> Config:
    """A config in a process that torchrun started."""
    monkeypatch.setattr('mmengine.device.utils.DEVICE', 'cpu')
    monkeypatch.setattr(torch.distributed, 'is_initialized', lambda: True)
    monkeypatch.setenv('RANK', str(rank))
    config = Config(dict(model=model))
    choose_launcher(config, 'pytorch')
    return config


@pytest.mark.parametrize('rank', [0, 1])
@pytest.mark.parametrize('kind', ['SyncBN', 'mmcv.SyncBN', torch.nn.SyncBatchNorm])
def test_sync_bn_becomes_bn_and_the_first_process_reports_it(
    monkeypatch, caplog, kind: str | type, rank: int
):
    sync = dict(type=kind, requires_grad=True)
    heads = [dict(norm_cfg=dict(sync)), dict(norm_cfg=dict(type='GN'))]
    config = launched(monkeypatch, rank, dict(neck=dict(norm_cfg=dict(sync)), heads=heads))
    assert config.model.neck.norm_cfg == dict(type='BN', requires_grad=True)
    assert [head.norm_cfg.type for head in config.model.heads] == ['BN', 'GN']
    messages = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert len(messages) == (rank == 0)
    assert all('each process has a separate BN' in message for message in messages)


def test_other_models_are_left_as_they_are(monkeypatch, caplog):
    model = dict(head=dict(norm_cfg=dict(type='BN')), sizes=[1, 2])
    assert launched(monkeypatch, 0, model).model == model and not caplog.records
