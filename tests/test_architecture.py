"""Imports point one way: pyproject.toml has the contracts."""

import subprocess
import sys

import pytest
from repository import ROOT


def test_contracts_of_imports():
    cli = pytest.importorskip('importlinter.cli')
    # A separate process: the logging settings of import-linter disable the loggers of other tests.
    lint = 'from importlinter import cli; raise SystemExit(cli.lint_imports(no_cache=True))'
    done = subprocess.run([sys.executable, '-c', lint], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == cli.EXIT_STATUS_SUCCESS, done.stdout + done.stderr
