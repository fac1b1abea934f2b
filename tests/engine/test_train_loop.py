"""Resuming a stopped iteration-based run gives the same results as not stopping it."""

import multiprocessing
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.runner import ValLoop
from torch import Tensor

from ptnt_mm.engine.run_checkpoints import latest_checkpoint

from .toy import ToyModel, toy_iterations, train

pytestmark = pytest.mark.slow

EVALUATED = dict(val_cfg=dict(), val_evaluator=dict(type='ToyMetric'))


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def load_with(config: Config, workers: int, persistent: bool = False) -> Config:
    config.train_dataloader.update(num_workers=workers, persistent_workers=persistent)
    return config


def resumed(config: Config) -> Config:
    config.resume, config.load_from = True, str(latest_checkpoint(Path(config.work_dir)))
    return config


def evaluated(work_dir: Path, iterations: int, **loop) -> Config:
    config = toy_iterations(work_dir, iterations, **EVALUATED)
    config.train_cfg.update(loop)
    config.val_dataloader = dict(
        config.train_dataloader,
        num_workers=0,
        persistent_workers=False,
        sampler=dict(type='DefaultSampler', shuffle=False),
    )
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
        (dict(workers=2), dict(workers=2)),
        (dict(workers=2, persistent=True), dict(workers=2, persistent=True)),
        (dict(workers=0), dict(workers=1)),
        (dict(workers=2), dict(workers=1)),
    ],
)
def test_resumed_weights_are_bit_identical(tmp_path: Path, before: dict, after: dict):
    """Other numbers of workers load the same data."""
    whole = train(load_with(toy_iterations(tmp_path / 'whole'), **before))
    train(load_with(toy_iterations(tmp_path / 'parts', 4), **before))
    rest = train(load_with(resumed(toy_iterations(tmp_path / 'parts')), **after))
    assert same(rest, whole)


def test_a_sampler_with_an_end_is_resumed_in_any_pass(tmp_path: Path):
    def config(name: str, iterations: int) -> Config:
        made = load_with(toy_iterations(tmp_path / name, iterations), 1)
        made.train_dataloader.sampler.type = 'DefaultSampler'
        return made

    whole = train(config('whole', 11))
    train(config('parts', 7))
    assert same(train(resumed(config('parts', 11))), whole)


def test_seeds_are_what_counts(tmp_path: Path):
    one = train(toy_iterations(tmp_path / 'one'))
    assert same(train(toy_iterations(tmp_path / 'two')), one)
    assert not same(train(toy_iterations(tmp_path / 'other', randomness=dict(seed=4))), one)


def test_validation_changes_nothing(tmp_path: Path):
    """The data set may draw random numbers, too."""
    plain = train(load_with(toy_iterations(tmp_path / 'plain'), 0))
    config = load_with(evaluated(tmp_path / 'evaluated', 12, val_interval=5), 0)
    assert same(train(config), plain)


def test_images_come_in_mmengines_order(tmp_path: Path, loaded: list[Tensor]):
    train(load_with(toy_iterations(tmp_path / 'ours', 8), 0))
    theirs = load_with(toy_iterations(tmp_path / 'theirs', 8), 0)
    theirs.train_cfg.type = 'IterBasedTrainLoop'
    train(theirs)
    ours, theirs = torch.stack(loaded[:8]), torch.stack(loaded[8:])
    assert torch.equal(ours[..., 0], theirs[..., 0])
    assert not torch.equal(ours, theirs)


def test_what_was_trained_with_is_not_loaded_again(tmp_path: Path, loaded: list[Tensor]):
    train(toy_iterations(tmp_path))
    whole = list(loaded)
    loaded.clear()
    (tmp_path / 'iter_12.pth').unlink()
    train(toy_iterations(tmp_path, 8))
    loaded.clear()
    train(resumed(toy_iterations(tmp_path)))
    assert torch.equal(torch.stack(loaded), torch.stack(whole[8:]))
    log = '\n'.join(file.read_text() for file in tmp_path.rglob('*.log'))
    assert 'resumed epoch: 0, iter: 8' in log and 'Advance dataloader' not in log


def test_a_finished_run_is_finished(tmp_path: Path, loaded: list[Tensor]):
    weights = train(toy_iterations(tmp_path))
    loaded.clear()
    before = set(multiprocessing.active_children())
    assert same(train(resumed(toy_iterations(tmp_path))), weights)
    assert not loaded and set(multiprocessing.active_children()) <= before


def test_workers_end_with_the_run(tmp_path: Path):
    before = set(multiprocessing.active_children())
    train(load_with(toy_iterations(tmp_path), 2, persistent=True))
    assert set(multiprocessing.active_children()) <= before


@pytest.mark.parametrize(
    ('loop', 'at'),
    [
        (dict(val_interval=4), [4, 8, 12, 14]),
        (dict(val_interval=4, val_begin=8), [8, 12, 14]),
        (dict(val_interval=6, dynamic_intervals=[(6, 2)]), [6, 8, 10, 12, 14]),
    ],
)
def test_validation_when_it_is_due_also_after_resuming(
    tmp_path: Path, monkeypatch, loop: dict, at: list[int]
):
    seen = []
    monkeypatch.setattr(ValLoop, 'run', lambda self: seen.append(self.runner.iter))
    train(evaluated(tmp_path / 'whole', 14, **loop))
    assert seen == at
    seen.clear()
    train(toy_iterations(tmp_path / 'parts', 8))
    train(resumed(evaluated(tmp_path / 'parts', 14, **loop)))
    assert seen == [iteration for iteration in at if iteration > 8]


def test_early_stopping_stops(tmp_path: Path):
    """After the third evaluation, because the score of the toy run always rises."""
    config = evaluated(tmp_path, 12, val_interval=2)
    stop = dict(type='EarlyStoppingHook', monitor='score', rule='less', patience=2)
    config.custom_hooks += [stop]
    train(config)
    assert [path.name for path in tmp_path.glob('*.pth')] == ['iter_4.pth']
