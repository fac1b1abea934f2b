"""Imports point one way: pyproject.toml has the contracts."""

import pytest
from repository import ROOT


def test_contracts_of_imports(monkeypatch):
    cli = pytest.importorskip('importlinter.cli')
    monkeypatch.chdir(ROOT)
    assert cli.lint_imports(no_cache=True) == cli.EXIT_STATUS_SUCCESS
