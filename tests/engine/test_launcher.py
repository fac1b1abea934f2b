"""Distributed training on a CPU."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.registry import MODELS
from toy import ToyModel, quick, toy_config

from ptnt_mm import api
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.engine.launcher import choose_launcher
from ptnt_mm.workbench.engine.runner import QuietRunner


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


def test_one_process_synchronises_nothing():
    """mmcv's own layer cannot even be built without other processes."""
    config = Config(dict(model=dict(backbone=dict(norm_cfg=dict(type='MMSyncBN')))))
    choose_launcher(config, 'none')
    assert config.model.backbone.norm_cfg.type == 'BN'


def test_copies_of_earlier_data_sets_are_forgotten():
    memos = BaseDataset._copy_without_annotation.__defaults__ or ()
    for memo in [memo for memo in memos if memo is not None]:  # in OneDL's fork, there is none
        memo[0] = 'the copy of an object that had this id'
        with suppress(Exception):  # it has no settings
            QuietRunner.build_dataloader({})
        assert not memo


def test_other_models_are_left_as_they_are(launch, caplog):
    model = dict(head=dict(norm_cfg=dict(type='BN')), sizes=[1, 2])
    assert launch(**model) == dict(model, type='WithNorms')
    assert 'separate BN' not in caplog.text
