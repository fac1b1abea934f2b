"""Shared by tests in several folders."""

import gc
import http.server
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from micro import MICRO_ARCH
from quick_mmengine import spare_imports

from ptnt_mm.models.kernels import memory
from ptnt_mm.models.position_tables import RELATIVE_POSITIONS
from ptnt_mm.weights.published import FILES, Published
from ptnt_mm.workbench.cli import main  # noqa: F401 (registers what configs of commands name)

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


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Published], None]:
    """Publish a file of weights for a network and arch, such as 'TNT tiny'."""

    def publish(network: str, file: Published) -> None:
        monkeypatch.setitem(FILES, network, (file,))

    return publish


@pytest.fixture
def add_relative_position(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, type], None]:
    """Add a value of the option ``relative_position``."""

    def add(name: str, position: type) -> None:
        monkeypatch.setitem(RELATIVE_POSITIONS, name, position)

    return add


@pytest.fixture
def few_sections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw a few of the sections of the page of features, which are quick."""
    from ptnt_mm.workbench.pages.visualize.sections import SECTIONS

    few = [section for section in SECTIONS if section.name in ('colours', 'similarity', 'channels')]
    monkeypatch.setattr('ptnt_mm.workbench.pages.visualize.visualize.SECTIONS', few)


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute blocks of the smallest networks in slices, as a CPU does with large images."""
    for limit in ('SLICE_BYTES', 'RECOMPUTE_BYTES'):
        monkeypatch.setattr(memory, limit, 4096)


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


@pytest.fixture
def server(tmp_path: Path, monkeypatch) -> Iterator[tuple[str, Path, Path]]:
    """A web server on this machine, and an empty hub folder: (address, served folder, hub)."""
    folder, hub = tmp_path / 'served', tmp_path / 'hub'
    folder.mkdir()
    monkeypatch.setattr(torch.hub, '_hub_dir', str(hub))
    for name in ('http_proxy', 'HTTP_PROXY', 'all_proxy', 'ALL_PROXY'):
        monkeypatch.delenv(name, raising=False)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler) as httpd:
        # shutdown() waits for a polling interval, by default half a second.
        threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()
        yield f'http://127.0.0.1:{httpd.server_port}', folder, hub
        httpd.shutdown()
