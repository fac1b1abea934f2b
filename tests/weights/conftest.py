"""A web server for weights."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from mmengine.registry import DefaultScope


@pytest.fixture(autouse=True)
def _no_host() -> Iterator[None]:
    """Names are those of MMEngine, whatever earlier tests loaded: mmpretrain has a TNT too."""
    with DefaultScope.overwrite_default_scope('mmengine'):
        yield


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
