"""Models small enough to be built hundreds of times, and a web server for their weights."""

import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from ptnt_mm.models import PyramidTNT

from .golden import filled


@pytest.fixture
def build_micro(micro_arch: dict) -> Callable[..., PyramidTNT]:
    """A function that builds a backbone of ``micro_arch`` with golden weights."""

    def build(**options) -> PyramidTNT:
        return filled(PyramidTNT(micro_arch, **options))

    return build


@pytest.fixture(autouse=True)
def _repeatable() -> Iterator[None]:
    """Fixed seed and one thread: on models this small, threads mostly wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


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
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f'http://127.0.0.1:{httpd.server_port}', folder, hub
        httpd.shutdown()
