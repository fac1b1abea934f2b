"""No test of a project depends on a network, or on what was downloaded before."""

import io
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError
from urllib.response import addinfourl

import pytest


class Web(urllib.request.HTTPSHandler):
    """A network in which only the addresses that contain some words exist."""

    words: tuple[str, ...] = ()

    def https_open(self, request: urllib.request.Request) -> addinfourl:
        if not any(word in request.full_url for word in self.words):
            raise URLError('not connected')
        answer = addinfourl(io.BytesIO(), {}, request.full_url, 200)
        answer.msg = 'OK'
        return answer


@pytest.fixture(autouse=True)
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """No network, and an empty hub folder."""
    monkeypatch.setenv('TORCH_HOME', str(tmp_path.with_name(f'{tmp_path.name}_torch')))
    urllib.request.install_opener(urllib.request.build_opener(web := Web()))
    yield web
    urllib.request.install_opener(None)


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the training step, which takes seconds."""
    monkeypatch.setattr('ptnt_mm.workbench.project.create._memory', lambda folder: None)
