"""Resuming a stopped iteration-based run gives the same results as not stopping it."""

import multiprocessing
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.runner import ValLoop
from torch import Tensor
from toy import ToyModel, evaluated, log_of, names, same, toy_iterations, train

from ptnt_mm.hooks.run_checkpoints import latest_checkpoint

pytestmark = pytest.mark.slow


def load_with(config: Config, workers: int, persistent: bool = False) -> Config:
    config.train_dataloader.update(num_workers=workers, persistent_workers=persistent)
    return config


def resumed(config: Config) -> Config:
    config.resume, config.load_from = True, str(latest_checkpoint(Path(config.work_dir)))
    return config


@pytest.fixture
def loaded(monkeypatch) -> list[Tensor]:
    """The batches that the model is trained with."""
    batches, forward = [], ToyModel.forward

    def remember(self, inputs, data_samples, mode):
        batches.append(torch.stack(list(inputs)))
        return forward(self, inputs, data_samples, mode)

    monkeypatch.setattr(ToyModel, 'forward', remember)
    return batches


@pytest.mark.parametrize(
    ('before', 'after'),
    [
        (dict(workers=0), dict(workers=0)),
        (dict(workers=2, persistent=True), dict(workers=2, persistent=True)),
        (dict(workers=2), dict(workers=1)),
    ],
)
def test_resumed_weights_are_bit_identical(tmp_path: Path, before: dict, after: dict):
    """Other numbers of workers load the same data."""
    whole = train(load_with(toy_iterations(tmp_path / 'whole'), **before))
    train(load_with(toy_iterations(tmp_path / 'parts', 4), **before))
    rest = train(load_with(resumed(toy_iterations(tmp_path / 'parts')), **after))
    assert same(rest, whole)


def test_validation_changes_nothing(tmp_path: Path):
    """The data set may draw random numbers, too."""
    plain = train(load_with(toy_iterations(tmp_path / 'plain'), 0))
    config = load_with(evaluated(toy_iterations(tmp_path / 'evaluated')), 0)
    config.train_cfg.val_interval = 5
    assert same(train(config), plain)


def test_resuming_does_not_load_used_images_again(tmp_path: Path, loaded: list[Tensor]):
    train(toy_iterations(tmp_path))
    whole = list(loaded)
    loaded.clear()
    (tmp_path / 'iter_12.pth').unlink()
    train(toy_iterations(tmp_path, 8))
    loaded.clear()
    train(resumed(toy_iterations(tmp_path)))
    assert torch.equal(torch.stack(loaded), torch.stack(whole[8:]))
    log = log_of(tmp_path)
    assert 'resumed epoch: 0, iter: 8' in log and 'Advance dataloader' not in log


def test_resuming_a_finished_run_trains_no_further(tmp_path: Path, loaded: list[Tensor]):
    weights = train(toy_iterations(tmp_path))
    loaded.clear()
    before = set(multiprocessing.active_children())
    assert same(train(resumed(toy_iterations(tmp_path))), weights)
    assert not loaded and set(multiprocessing.active_children()) <= before


@pytest.mark.parametrize(
    ('loop', 'at'),
    [
        (dict(val_interval=4), [4, 8, 12, 14]),
        (dict(val_interval=4, val_begin=8), [8, 12, 14]),
        (dict(val_interval=6, dynamic_intervals=[(6, 2)]), [6, 8, 10, 12, 14]),
    ],
)
def test_validation_interval_is_kept_after_resuming(
    tmp_path: Path, monkeypatch, loop: dict, at: list[int]
):
    def config(name: str) -> Config:
        made = evaluated(load_with(toy_iterations(tmp_path / name, 14), 0))
        made.train_cfg.update(loop)
        return made

    seen = []
    monkeypatch.setattr(ValLoop, 'run', lambda self: seen.append(self.runner.iter))
    train(config('whole'))
    assert seen == at
    seen.clear()
    train(load_with(toy_iterations(tmp_path / 'parts', 8), 0))
    train(resumed(config('parts')))
    assert seen == [iteration for iteration in at if iteration > 8]


def test_early_stopping_stops(tmp_path: Path):
    """After the third evaluation, because the score of the toy run always rises."""
    config = evaluated(load_with(toy_iterations(tmp_path), 0))
    config.train_cfg.val_interval = 2
    stop = dict(type='EarlyStoppingHook', monitor='score', rule='less', patience=2)
    config.custom_hooks += [stop]
    train(config)
    assert names(tmp_path) == ['iter_4.pth']
