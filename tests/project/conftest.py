"""No test of a project depends on a network, or on what was downloaded before."""

import pytest


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('ptnt_mm.workbench.project.backbones.is_reachable', lambda url: False)
    monkeypatch.setattr('ptnt_mm.workbench.project.backbones.cached_file', lambda url: None)


@pytest.fixture
def untried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the training step, which takes seconds."""
    monkeypatch.setattr('ptnt_mm.workbench.project.create._memory', lambda folder: None)
