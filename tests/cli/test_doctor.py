"""The doctor: each kind of broken thing gives a row, a command, and exit status 1."""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from ptnt_mm.mmcv_ops import installation
from ptnt_mm.utils.versions import FORKS, HOST_PACKAGES, ON_FORKS, VERSIONS
from ptnt_mm.workbench.cli import probes
from ptnt_mm.workbench.cli.main import run

OK, OPTIONAL, BROKEN = 'ok', 'optional', 'BROKEN'
HOSTS = [name for name in HOST_PACKAGES if name not in ON_FORKS]
TESTED = {name: tested for name, (_, tested) in VERSIONS.items() if name != 'Python'}


@pytest.fixture
def here(monkeypatch, mmcv_folder):
    """Installed versions, as a dict to change; the originals, everything at its tested version."""
    found = {name: tested for name, tested in TESTED.items() if name not in FORKS.values()}

    def version(name: str) -> str:
        if name not in found:
            raise metadata.PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr(metadata, 'version', version)
    monkeypatch.setitem(sys.modules, 'pip', pytest)  # any module
    return found


@pytest.fixture
def mmcv_folder(tmp_path, monkeypatch) -> Path:
    """The folder of an mmcv with our operators."""
    folder = tmp_path / 'mmcv'
    folder.mkdir()
    (folder / '__init__.py').touch()
    (folder / '_ext.py').write_bytes(installation.EXTENSION.read_bytes())
    monkeypatch.delitem(sys.modules, 'mmcv', raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    return folder


@pytest.fixture
def forks_here(here):
    """Installed versions, as a dict to change; forks, and a setuptools without pkg_resources."""
    for name, fork in FORKS.items():
        del here[name]
        here[fork] = TESTED[fork]
    here['setuptools'] = '84.2.1'
    return here


@pytest.fixture
def errors(monkeypatch):
    """The errors of the probes' processes, as a dict to change; everything works."""
    found = {}

    def run(command: list[str], **options: object) -> subprocess.CompletedProcess:
        said = '\n'.join(found[name] for name in command if name in found)
        return subprocess.CompletedProcess(command, bool(said), stdout='', stderr=said)

    monkeypatch.setattr(subprocess, 'run', run)
    return found


def table() -> list[SimpleNamespace]:
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()):
        run('doctor', ['--json', '-'])
    return [SimpleNamespace(**row) for row in json.loads(printed.getvalue())]


def row_of(what: str) -> SimpleNamespace:
    return next(row for row in table() if row.what == what)


def test_everything_fine(here, errors, monkeypatch, capsys):
    for name in ('OMP_WAIT_POLICY', 'GOMP_SPINCOUNT'):
        monkeypatch.setenv(name, 'x')
        monkeypatch.delenv(name)
    assert run('doctor', []) == 0
    assert os.environ['GOMP_SPINCOUNT'] == '1000', 'as the other commands have it'
    assert {row.verdict for row in table()} == {OK}
    assert 'to fix it' not in capsys.readouterr().out


def test_the_table_as_json(here, errors, capsys):
    here['torch'] = '2.5.1'
    assert run('doctor', ['--json', '-']) == 1
    printed = capsys.readouterr()
    rows = {row['what']: row for row in json.loads(printed.out)}
    assert rows['torch']['verdict'] == BROKEN and rows['torch']['fix'] in printed.err
    assert rows['mmengine']['verdict'] == OK


@pytest.mark.parametrize(
    ('name', 'what', 'version'),
    [
        ('torch', 'torch', '2.5.1+cu124'),
        ('mmengine', 'mmengine', '0.11.0rc0'),
        ('mmcv-lite', 'mmcv', '2.2.0'),
        ('mmdet', 'mmdet', '3.2.0'),
    ],
)
def test_versions_out_of_range(here, errors, capsys, name, what, version):
    here[name] = version
    assert run('doctor', []) == 1
    row = row_of(what)
    assert row.verdict == BROKEN
    assert version in row.problem and VERSIONS[name][0] in row.problem
    assert f'to fix it: {row.fix}' in capsys.readouterr().out


def test_an_old_python(here, errors, monkeypatch):
    monkeypatch.setattr(sys, 'version_info', (3, 10, 14))
    assert row_of('Python').verdict == BROKEN


@pytest.mark.parametrize('name', ['CUDA', 'OpenCV', 'mmengine', *HOSTS, 'ptnt_mm'])
def test_an_error_is_a_row(here, errors, capsys, name):
    errors[name] = 'ImportError: libGL.so.1: cannot open shared object file'
    assert run('doctor', []) == 1
    output = capsys.readouterr().out
    assert 'libGL.so.1' in output
    assert output.count('to fix it') == 1


def test_torch_is_blamed_for_what_needs_it(here, errors):
    errors.update(dict.fromkeys(probes.PROBES, "ModuleNotFoundError: No module named 'torch'"))
    del here['torch']
    broken = [row for row in table() if row.verdict == BROKEN]
    assert [row.what for row in broken if row.fix != 'fix torch first'] == ['torch']
    assert broken[0].fix.endswith("pip install 'torch>=2.6'")


def test_hosts_and_what_they_need_are_optional(here, errors, capsys):
    for name in (*HOSTS, 'mmcv-lite', 'setuptools'):
        del here[name]
    assert run('doctor', []) == 0
    optional = [row.what for row in table() if row.verdict == OPTIONAL]
    assert optional == ['setuptools', 'mmcv', *HOSTS]
    assert "'mmdet>=3.3,<3.4'" in row_of('mmdet').fix
    assert row_of('mmsegmentation').fix.endswith(' ftfy regex')


@pytest.mark.parametrize(
    ('version', 'verdict'),
    [('5.24.0', OPTIONAL), ('4.52.0', OPTIONAL), ('4.51.3', OK), (None, None)],
)
def test_nothing_is_broken_beside_any_transformers(here, errors, capsys, version, verdict):
    here['transformers'] = version
    found = {
        row.what: row.verdict for row in table() if row.verdict != OK or row.what == 'transformers'
    }
    assert found == ({'transformers': verdict} if version else {})
    assert run('doctor', []) == 0
    fix = 'to get it: ' in (printed := capsys.readouterr().out)
    assert fix == ("install 'transformers<4.52'" in printed) == (verdict == OPTIONAL)


def test_a_host_needs_mmcv(here, errors):
    del here['mmcv-lite']
    row = row_of('mmcv')
    assert row.verdict == BROKEN
    assert "'mmcv-lite==2.1.0' torchvision 'torch==2.15.0'" in row.fix


def test_mmcv_lite_over_a_compiled_mmcv(here, errors):
    here['mmcv'] = '2.1.0'
    assert row_of('mmcv').verdict == OK
    here['mmcv'] = '2.0.1'
    assert row_of('mmcv').verdict == BROKEN


def test_the_forks(forks_here, errors):
    assert {row.verdict for row in table()} == {OK}
    assert row_of('mmdet').found == '3.5.1 (onedl-mmdetection)'
    assert row_of('mmcv').found == '2.3.6 (onedl-mmcv)'
    assert row_of('onedl-mmrotate').found == '1.2.1'
    del forks_here['onedl-mmrotate']
    assert row_of('onedl-mmrotate').verdict == OPTIONAL
    forks_here['onedl-mmsegmentation'] = '1.3.0'
    row = row_of('mmsegmentation')
    assert row.verdict == BROKEN and "'onedl-mmsegmentation>=1.4.2,<1.5'" in row.fix
    del forks_here['onedl-mmcv']
    row = row_of('mmcv')
    assert row.verdict == BROKEN and "'onedl-mmcv==2.3.6' torchvision" in row.fix


@pytest.mark.parametrize(('name', 'what'), [('mmengine', 'mmengine'), ('mmcv-lite', 'mmcv')])
def test_an_original_and_its_fork_overwrite_each_other(forks_here, errors, name, what):
    forks_here[name] = TESTED[name]
    row = row_of(what)
    assert row.verdict == BROKEN and 'share one folder' in row.problem
    assert name in row.fix and f"install '{FORKS[name]}" in row.fix


def test_operators_that_the_hosts_own_commands_do_not_find(here, errors, mmcv_folder):
    (mmcv_folder / '_ext.py').unlink()
    row = row_of('mmcv operators')
    assert (row.verdict, 'mmcv-ops install' in row.fix) == (OPTIONAL, True)
    errors['mmcv operators'] = "ModuleNotFoundError: No module named 'torchvision'"
    row = row_of('mmcv operators')
    assert (row.verdict, row.fix) == (BROKEN, row_of('mmcv').fix)


def test_commands_for_an_environment_without_pip(here, errors, monkeypatch):
    here['torch'] = '2.5.0'
    monkeypatch.setitem(sys.modules, 'pip', None)
    assert row_of('torch').fix == f"uv pip install --python {sys.executable} 'torch>=2.6'"


# The probes themselves, for real.


@pytest.mark.parametrize(
    ('body', 'text'),
    [
        ('raise ImportError("libGL.so.1")', 'ImportError: libGL.so.1'),
        ('raise SystemExit(3)', 'status 3'),
        ('import os; os.abort()', 'SIGABRT'),
        ('import time; time.sleep(60)', 'no answer within 180 s'),
    ],
)
def test_a_package_that_ends_its_process(tmp_path, monkeypatch, body, text):
    (tmp_path / 'cv2.py').write_text(body)
    (tmp_path / 'pkg_resources.py').touch()
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    run = subprocess.run
    monkeypatch.setattr(
        subprocess, 'run', lambda command, **options: run(command, **options | dict(timeout=2))
    )
    errors, _ = probes.find_errors(['OpenCV', 'setuptools'])
    assert list(errors) == ['OpenCV'] and text in errors['OpenCV']


def test_the_probes_run_on_the_cpu(monkeypatch):
    pytest.importorskip('mmcv.ops')
    monkeypatch.setenv('CUDA_VISIBLE_DEVICES', '-1')
    errors, printed = probes.find_errors(['CUDA', 'mmcv operators', 'ptnt_mm', 'environment'])
    assert errors == {}
    assert 'torch can use: 0' in printed and sys.platform in printed
