"""Shared by tests in several folders."""

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from micro import MICRO_ARCH
from quick_mmengine import spare_imports

import ptnt_mm.workbench  # noqa: F401

# Background jobs of a shell ignore Ctrl-C, and processes inherit that; those that
# the tests interrupt must not.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start with the longest tests, so that no worker is left alone with one of them."""
    longest = ('test_tutorial', 'tools')
    items.sort(key=lambda item: [name not in item.path.with_suffix('').parts for name in longest])


def pytest_collection_finish() -> None:
    spare_imports()


@pytest.fixture(scope='module', autouse=True)
def _no_garbage_of_other_files() -> Iterator[None]:
    """Models have reference cycles; modules that the file's tests imported stay in memory."""
    yield
    gc.collect()
    spare_imports()


@pytest.fixture(scope='session')
def micro_arch() -> dict:
    """That of `micro.py`, which a test may change."""
    return dict(MICRO_ARCH)


@pytest.fixture(scope='session')
def common(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all processes of a run of the suite; a ``FileLock`` keeps them apart."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if 'PYTEST_XDIST_WORKER' in os.environ else base


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    """A checkpoint of one epoch, which no test may change, and the runner that wrote it."""
    from detector_runs import make_runner

    work_dir = tmp_path_factory.mktemp('trained') / 'run'
    runner = make_runner(work_dir)
    runner.train()
    return work_dir / 'epoch_1.pth', runner


@pytest.fixture(scope='module')
def averaged(tmp_path_factory):
    """A checkpoint of one epoch with moving averages."""
    from detector_runs import EMA, make_runner

    work_dir = tmp_path_factory.mktemp('averaged') / 'run'
    runner = make_runner(work_dir, hooks=[EMA])
    runner.train()
    return work_dir / 'epoch_1.pth', runner
