"""Checkpoints that tests of several files load; none may change them."""

import pytest

from .detector_runs import EMA, make_runner


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """A checkpoint of one epoch, and the runner that wrote it."""
    work_dir = tmp_path_factory.mktemp('trained') / 'run'
    runner = make_runner(work_dir)
    runner.train()
    return work_dir / 'epoch_1.pth', runner


@pytest.fixture(scope='module')
def averaged(tmp_path_factory):
    """A checkpoint of one epoch with moving averages."""
    work_dir = tmp_path_factory.mktemp('averaged') / 'run'
    runner = make_runner(work_dir, hooks=[EMA])
    runner.train()
    return work_dir / 'epoch_1.pth', runner
