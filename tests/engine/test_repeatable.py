"""Resuming a stopped run gives the same results as not stopping it."""

import sys
from pathlib import Path

import pytest
import torch
from toy import ToyModel, same, toy_config, train

from ptnt_mm.hooks.repeat import _start_worker
from ptnt_mm.hooks.run_checkpoints import latest_checkpoint

pytestmark = pytest.mark.slow


@pytest.mark.parametrize('workers', [0, 2])
def test_resumed_weights_are_bit_identical(tmp_path: Path, workers: int):
    def config(name: str, epochs: int):
        made = toy_config(tmp_path / name, epochs)
        loader = made.train_dataloader
        loader.num_workers, loader.persistent_workers = workers, workers > 0
        return made

    whole = train(config('whole', 4))
    train(config('parts', 2))
    rest = config('parts', 4)
    rest.resume, rest.load_from = True, str(latest_checkpoint(tmp_path / 'parts'))
    assert same(train(rest), whole)


def test_seeds_are_what_counts(tmp_path: Path):
    one = train(toy_config(tmp_path / 'one', 2))
    assert same(train(toy_config(tmp_path / 'two', 2)), one)
    other = toy_config(tmp_path / 'other', 2, randomness=dict(seed=4))
    assert not same(train(other), one)


def test_epochs_differ(tmp_path: Path, monkeypatch):
    """MMEngine's own workers begin every epoch with the same numbers."""
    rows = []
    forward = ToyModel.forward

    def remember(self, inputs, data_samples, mode):
        rows.append(torch.stack(list(inputs)))
        return forward(self, inputs, data_samples, mode)

    monkeypatch.setattr(ToyModel, 'forward', remember)
    train(toy_config(tmp_path, 2))
    first, second = torch.cat(rows[:3]), torch.cat(rows[3:])
    assert not set(first[:, 1:].flatten().tolist()) & set(second[:, 1:].flatten().tolist())


def test_workers_print_their_errors_but_not_that_training_was_stopped(capfd, monkeypatch):
    """Ctrl-C may close the connections that transfer batches at any moment."""
    monkeypatch.setattr(sys, 'excepthook', sys.__excepthook__)
    _start_worker(None, 0)
    for error in (ConnectionResetError(), EOFError(), BrokenPipeError()):
        sys.excepthook(type(error), error, None)
    assert capfd.readouterr().err == ''
    sys.excepthook(ValueError, ValueError('of its own'), None)
    assert 'ValueError: of its own' in capfd.readouterr().err
