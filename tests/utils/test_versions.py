"""Versions: the same bounds everywhere, compared as in pip."""

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from repository import ROOT

from ptnt_mm import __version__
from ptnt_mm.utils.versions import FORKS, VERSIONS, installed, is_within, provider
from ptnt_mm.workbench.export.formats import OLDEST_TORCH

BOUND = re.compile(rf'\b({"|".join(VERSIONS)})((?:,?[<>]=?\d[\d.]*)+)')


def bounds_in(file: Path) -> set[tuple[str, str]]:
    """Every package in a file with the bounds after its name."""
    return set(BOUND.findall(file.read_text(encoding='utf-8')))


def test_setup_promises_the_bounds_that_the_doctor_expects():
    given = {name: bounds for name, (bounds, _) in VERSIONS.items()}
    # No extra lists this package: mmengine requires it.
    given.pop('opencv-python')
    python = given.pop('Python')
    for_export = ('torch', f'>={OLDEST_TORCH}')
    assert bounds_in(ROOT / 'setup.py') == {*given.items(), for_export}
    assert f"python_requires='{python}'" in (ROOT / 'setup.py').read_text()


def test_docs_and_messages_have_the_same_bounds():
    files = [ROOT / 'README.md', *ROOT.glob('docs/**/*.md'), *ROOT.glob('ptnt_mm/**/*.py')]
    found = {file: bounds_in(file) for file in files}
    assert found[ROOT / 'docs' / 'install.md']
    for file, bounds in found.items():
        assert all(VERSIONS[name][0] == bound for name, bound in bounds), file


def pins(file: str) -> set[str]:
    """The pinned packages of a file for `make matrix`."""
    lines = (ROOT / 'requirements' / file).read_text(encoding='utf-8').splitlines()
    return {line for line in lines if not line.startswith('#')}


def test_the_versions_of_the_tests_are_the_constraints():
    assert all(is_within(tested, bounds) for bounds, tested in list(VERSIONS.values())[1:])
    tested = {f'{name}=={tested}' for name, (_, tested) in VERSIONS.items() if name != 'Python'}
    of_forks = {line for line in tested if line.startswith('onedl-')}
    of_originals = {f'{name}=={VERSIONS[name][1]}' for name in FORKS}
    assert pins('constraints.txt') & tested == tested - of_forks
    assert pins('onedl.txt') & tested == tested - of_originals


def test_both_families_are_tested_on_the_same_versions_of_everything_else():
    everywhere = pins('constraints.txt')
    names = {line.partition('==')[0] for line in everywhere}
    shared = {line for line in pins('onedl.txt') if line.partition('==')[0] in names}
    assert shared <= {line.partition(' ;')[0] for line in everywhere}


def version_of_setup(family: str) -> subprocess.CompletedProcess:
    """The version of a wheel for a family of hosts."""
    command = [sys.executable, 'setup.py', '--version']
    environment = {**os.environ, 'PTNT_HOSTS': family}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_an_unknown_family_is_an_error():
    done = version_of_setup('openmm')
    assert done.returncode and 'PTNT_HOSTS=openmm is unknown: set it to onedl' in done.stderr


@pytest.mark.parametrize(('family', 'label'), [('', ''), ('onedl', '+onedl')])
def test_wheels_that_need_different_packages_have_different_versions(family: str, label: str):
    assert version_of_setup(family).stdout.strip() == f'{__version__}{label}'


@pytest.mark.parametrize(
    ('version', 'bounds', 'expected'),
    [
        ('2.6', '>=2.6', True),
        ('2.5.1+cu124', '>=2.6', False),
        ('2.15.0+cu130', '>=2.6', True),
        ('2.16.0.dev20261101', '>=2.6', True),
        ('3.11.0', '>=3.11,<3.14', True),
        ('3.14.0', '>=3.11,<3.14', False),
        ('0.10.7', '>=0.10.7,<0.11', True),
        ('0.11.0rc0', '>=0.10.7,<0.11', False),
        ('of a fork', '>=2.6', False),
        (None, '>=2.6', False),
    ],
)
def test_versions_are_compared_as_pip_does(version: str | None, bounds: str, expected: bool):
    assert is_within(version, bounds) is expected


def test_what_is_installed():
    assert is_within(installed('mmengine'), VERSIONS[provider('mmengine')][0])
    assert installed('no-such-package') is None


@pytest.mark.parametrize(
    ('here', 'name', 'expected'),
    [
        (set(), 'mmdet', 'mmdet'),
        ({'mmdet'}, 'mmdet', 'mmdet'),
        ({'onedl-mmdetection'}, 'mmdet', 'onedl-mmdetection'),
        ({'onedl-mmdetection'}, 'mmsegmentation', 'onedl-mmsegmentation'),
        ({'onedl-mmdetection', 'mmcv-lite'}, 'mmcv-lite', 'mmcv-lite'),
        ({'onedl-mmengine', 'mmengine'}, 'mmengine', 'onedl-mmengine'),
        ({'onedl-mmengine'}, 'torch', 'torch'),
    ],
)
def test_the_name_for_pip_is_that_of_the_family_here(here, name, expected, monkeypatch):
    def version(name: str) -> str:
        if name not in here:
            raise metadata.PackageNotFoundError(name)
        return '1.0'

    monkeypatch.setattr(metadata, 'version', version)
    assert provider(name) == expected
    assert installed(name) == ('1.0' if here & {name, expected} else None)
