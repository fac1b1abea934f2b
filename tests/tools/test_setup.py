"""`make setup`: when it runs, and the error for a Python that is too old. Nothing is installed."""

import os
import shutil
import subprocess
import sys

import pytest
from repository import ROOT

SOURCES = ('requirements/constraints.txt', 'setup.py', 'pyproject.toml', 'ptnt_mm/version.py')


@pytest.fixture
def checkout(tmp_path):
    """A checkout with an environment that is complete."""
    for number, name in enumerate(('Makefile', *SOURCES, '.venv/.complete')):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (number, number))
    shutil.copy(ROOT / 'Makefile', tmp_path)
    stamp = tmp_path / '.venv' / '.complete'
    stamp.write_text(str(tmp_path))
    return tmp_path


def make(folder, *words):
    """The commands that make would run, or what it prints if there is nothing to do."""
    return subprocess.run(['make', *words], cwd=folder, capture_output=True, text=True)


def test_complete_environment_is_left_alone(checkout):
    assert 'Nothing to be done' in make(checkout, '-n', 'setup').stdout


@pytest.mark.parametrize('name', SOURCES)
def test_changed_source_is_installed(checkout, name):
    os.utime(checkout / name, (2**32, 2**32))
    assert 'pip install' in make(checkout, '-n', 'setup').stdout


def test_copied_environment_is_made_again(checkout):
    copied = shutil.copytree(checkout, checkout.with_name('copied'))
    assert 'venv --clear' in make(copied, '-n', 'setup').stdout


def test_an_environment_elsewhere_is_not_cleared(checkout):
    """The commands run, with a Python that would only be asked for its version."""
    elsewhere = shutil.move(checkout / '.venv', checkout / 'elsewhere')
    (checkout / '.venv').symlink_to(elsewhere)
    done = make(checkout, 'setup', f'PYTHON={sys.executable}')
    assert done.returncode and f'.venv is a link to {elsewhere}' in done.stderr
    assert sorted(os.listdir(elsewhere)) == ['.complete']


def test_named_python_is_compared(checkout):
    assert 'venv --clear' in make(checkout, '-n', 'setup', 'PYTHON=python3').stdout


def test_old_python_is_an_error(checkout):
    old = checkout / 'old'
    old.write_text(
        '#!/bin/sh\n'
        'exec python3 -c "import sys; sys.version_info = (3, 9, 0); exec(sys.argv[1])" "$2"\n'
    )
    old.chmod(0o755)
    result = make(checkout, 'setup', f'PYTHON={old}')
    assert result.returncode and '3.11 to 3.13' in result.stderr and '3.9' in result.stderr
    assert not (checkout / '.venv' / 'bin').exists()
