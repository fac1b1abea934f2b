"""Installation of our extension into mmcv, and its limits."""

import importlib.metadata
import os
import shutil
import stat
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder
from pathlib import Path

import pytest
from mmcv import ops
from repository import ROOT

from ptnt_mm.mmcv_ops import finder, installation
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.versions import provider
from ptnt_mm.workbench.cli.main import run


@pytest.fixture
def mmcv_folder(tmp_path, monkeypatch) -> Path:
    """An mmcv-lite with the parts that `place` and `status` use."""
    folder = tmp_path / 'mmcv'
    (folder / 'ops').mkdir(parents=True)
    (folder / 'ops' / '__init__.py').write_text('from mmcv import _ext\n')
    monkeypatch.setenv('PYTHONPATH', f'{tmp_path}{os.pathsep}{ROOT}')
    (folder / '__init__.py').touch()
    (folder / 'version.py').write_text("__version__ = '2.1.0'\n")
    monkeypatch.delitem(sys.modules, 'mmcv')
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def test_install_and_remove(mmcv_folder, capsys):
    written = mmcv_folder / '_ext.py'
    assert installation.source().kind == installation.OFFERED
    assert run('mmcv-ops', ['install']) == 0
    assert written.read_bytes() == installation.EXTENSION.read_bytes()
    assert run('mmcv-ops', ['install']) == 0  # again, as an update does
    assert [file.name for file in mmcv_folder.glob('*_ext*')] == ['_ext.py']
    assert installation.source() == installation.Source(installation.INSTALLED, written)
    assert run('mmcv-ops', ['remove']) == 0
    assert str(written) in capsys.readouterr().out.splitlines()[-1]
    assert not written.exists()
    assert 'Nothing to do' in installation.remove()


def outcomes(capsys) -> list[str]:
    """The status of any program, then of those that import ptnt_mm."""
    capsys.readouterr()
    assert run('mmcv-ops', ['status']) == 0
    lines = capsys.readouterr().out.splitlines()
    return [line.split('  ', 1)[1].strip() for line in lines if line.startswith('import')]


@pytest.fixture
def only_plain(monkeypatch):
    """Avoid the import of ptnt_mm, which takes seconds."""
    name = 'ptnt_mm.mmcv_ops.installation._PROGRAMS'
    monkeypatch.setattr(name, {'import mmcv.ops': installation._IMPORT})


def test_status_differs_between_programs_while_nothing_is_installed(mmcv_folder, capsys):
    everywhere, after_us = outcomes(capsys)
    assert everywhere.startswith('fails: ') and '_ext' in everywhere
    assert after_us.startswith('works, ptnt_mm') and str(finder.EXTENSION) in after_us


def test_status_of_our_file(mmcv_folder, capsys, only_plain):
    installation.install()
    (outcome,) = outcomes(capsys)
    assert outcome.startswith('works, ptnt_mm') and str(mmcv_folder / '_ext.py') in outcome


def test_status_of_a_compiled_module_that_does_not_load(mmcv_folder, capsys, only_plain):
    (mmcv_folder / f'_ext{EXTENSION_SUFFIXES[0]}').write_bytes(b'for another torch')
    assert outcomes(capsys)[0].startswith('fails: ImportError')


def test_a_compiled_extension_wins_and_stays(mmcv_folder):
    compiled = mmcv_folder / f'_ext{EXTENSION_SUFFIXES[0]}'
    compiled.write_bytes(b'compiled')
    assert 'Nothing to do' in installation.install()
    assert 'Nothing to do' in installation.remove()
    assert installation.source() == installation.Source(installation.COMPILED, compiled)
    assert compiled.read_bytes() == b'compiled' and not (mmcv_folder / '_ext.py').exists()


def test_python_prefers_a_compiled_module_to_our_file(mmcv_folder):
    installation.install()
    compiled = mmcv_folder / f'_ext{EXTENSION_SUFFIXES[0]}'
    compiled.touch()
    assert PathFinder.find_spec('_ext', [str(mmcv_folder)]).origin == str(compiled)


@pytest.mark.parametrize('action', [installation.install, installation.remove])
def test_file_of_another_package_is_kept(mmcv_folder, action):
    foreign = mmcv_folder / '_ext.py'
    foreign.write_text('"""Another stand-in."""\n')
    with pytest.raises(UserError, match='not written by ptnt_mm'):
        action()
    assert foreign.read_text() == '"""Another stand-in."""\n'
    assert installation.source().kind == installation.FOREIGN


def test_missing_packages_and_other_versions_are_reported(mmcv_folder, monkeypatch, capsys):
    (mmcv_folder / 'version.py').write_text("__version__ = '2.2.0'\n")
    assert run('mmcv-ops', ['install']) == 1
    assert 'mmcv 2.2.0 is not >=2.1,<2.2' in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, 'mmcv', None)
    with pytest.raises(UserError, match=f"pip install '{provider('mmcv-lite')}"):
        installation.install()
    assert 'mmcv-lite' in installation.status()


@pytest.mark.skipif(os.geteuid() == 0, reason='root may write anywhere')
def test_read_only_folder_is_refused(mmcv_folder):
    mmcv_folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with pytest.raises(UserError, match='cannot be written'):
            installation.install()
    finally:
        mmcv_folder.chmod(stat.S_IRWXU)


def test_the_finder_is_for_one_module_and_added_once(monkeypatch):
    finder.add_finder()
    finders = [each for each in sys.meta_path if each is finder.Finder]
    assert len(finders) == 1
    # After Python's finders, so that a compiled extension comes first.
    assert sys.meta_path.index(finder.Finder) > sys.meta_path.index(PathFinder)
    assert finder.Finder.find_spec('mmcv._ext').origin == str(finder.EXTENSION)
    for name in ('mmcv', '_ext', 'mmcv._ext2', 'torchvision._C'):
        assert finder.Finder.find_spec(name) is None


def lite(folder: Path) -> Path:
    """A copy of the installed mmcv without a compiled extension, but with our file."""
    installed = Path(ops.__file__).parents[1]
    target = folder / 'site' / 'mmcv'
    ignored = shutil.ignore_patterns('_ext.*', 'csrc', '__pycache__')
    shutil.copytree(installed, target, ignore=ignored)
    shutil.copyfile(installation.EXTENSION, target / '_ext.py')
    return target.parent


def python(code: str, *path: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(map(str, path))}
    return subprocess.run(
        [sys.executable, '-c', code], env=environment, capture_output=True, text=True, cwd=path[0]
    )


def test_the_file_serves_without_importing_us(tmp_path):
    code = """
import sys
import torch
from mmcv.ops import get_compiler_version, nms, points_in_boxes_cpu
from mmcv.utils import collect_env
assert nms(torch.zeros(2, 4), torch.ones(2), 0.5)[1].tolist() == [0, 1]
assert 'ptnt_mm' not in sys.modules and 'ptnt_mm' in get_compiler_version()
assert 'ptnt_mm' in collect_env()['MMCV Compiler']
try:
    points_in_boxes_cpu(torch.zeros(1, 1, 3), torch.zeros(1, 1, 7))
except NotImplementedError as error:
    print(error)
"""
    done = python(code, lite(tmp_path), ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('points_in_boxes') and 'compil' in done.stdout


def test_the_file_reports_that_ptnt_mm_is_gone(tmp_path):
    if any(name.startswith('ptnt_mm') for name in _installed_names()):
        pytest.skip('ptnt_mm is installed, not only on the path')
    done = python('import mmcv.ops', lite(tmp_path))
    last = done.stderr.splitlines()[-1]
    assert last.startswith('ModuleNotFoundError') and 'ptnt_mm, which is not installed' in last


def _installed_names() -> list[str]:
    return [str(found.metadata['Name']) for found in importlib.metadata.distributions()]
