"""The doctor: each kind of broken thing gives a row, a command, and exit status 1."""

import json
import re
import sys

import pytest

from ptnt_mm.checkpoints.unsafe_switch import UNSAFE_SWITCH
from ptnt_mm.cli import doctor
from ptnt_mm.doctor import probes, report
from ptnt_mm.doctor.probes import PROBES, Answer
from ptnt_mm.doctor.report import ABSENT, BROKEN, OK, Row
from ptnt_mm.mmcv_ops.place import source
from ptnt_mm.utils.versions import HOST_PACKAGES, VERSIONS

FINE = Answer(True, 'imports')
TESTED = {name: tested for name, (_, tested) in VERSIONS.items() if name != 'Python'}


@pytest.fixture
def here(monkeypatch):
    """Installed versions, as a dict to change; everything at its tested version."""
    versions = dict(TESTED)
    monkeypatch.setattr(report, 'installed', versions.get)
    monkeypatch.setattr(report, 'find_spec', lambda name: True)
    return versions


@pytest.fixture
def answers(monkeypatch):
    """Answers of the probes, as a dict to change; everything works."""
    found = dict.fromkeys(PROBES, FINE)
    monkeypatch.setattr(report, 'ask_probes', lambda names: found.items())
    monkeypatch.delenv(UNSAFE_SWITCH, raising=False)
    return found


def row_of(rows: list[Row], what: str) -> Row:
    return next(row for row in rows if row.what == what)


def test_everything_fine(here, answers, capsys):
    assert report.main() == 0
    assert all(row.verdict == OK for row in report.examine())
    assert 'to fix it' not in capsys.readouterr().out


def test_the_table_as_json(here, answers, capsys):
    here['torch'] = '2.5.1'
    assert doctor.main(['--json', '-']) == 1
    printed = capsys.readouterr()
    rows = {row['what']: row for row in json.loads(printed.out)}
    assert rows['torch']['verdict'] == BROKEN and rows['torch']['fix'] in printed.err
    assert rows['mmengine']['verdict'] == OK


def test_columns_are_aligned_and_complete(here, answers, capsys):
    answers['cuda'] = Answer(True, '13.0, driver 580.1, ' + 'NVIDIA H200 (9.0), ' * 8)
    report.main()
    lines = capsys.readouterr().out.splitlines()
    verdicts = lines[0].index('verdict')
    assert [line[verdicts:] for line in lines[1:]] == ['ok'] * (len(lines) - 1)
    assert lines[3].count('NVIDIA H200 (9.0)') == 8


@pytest.mark.parametrize(('name', 'what', 'version'), [
    ('torch', 'torch', '2.5.1+cu124'),
    ('mmengine', 'mmengine', '0.11.0rc0'),
    ('mmcv-lite', 'mmcv', '2.2.0'),
    ('mmdet', 'mmdet', '3.2.0'),
    ('mmsegmentation', 'mmsegmentation', '1.1.1'),
])  # yapf: disable
def test_versions_out_of_range(here, answers, capsys, name, what, version):
    here[name] = version
    assert report.main() == 1
    row = row_of(report.examine(), what)
    assert row.verdict == BROKEN
    assert VERSIONS[name][0] in row.problem
    assert f'to fix it: {row.fix}' in capsys.readouterr().out


def test_old_python():
    for version in ('3.11.0', '3.13.1'):
        assert report.python_row(version).verdict == OK
    for version in ('3.10.14', '3.14.0'):
        assert report.python_row(version).verdict == BROKEN


@pytest.mark.parametrize('probe', ['mmengine', *HOST_PACKAGES, 'opencv', 'ptnt_mm'])
def test_an_import_that_fails_is_a_row(here, answers, capsys, probe):
    answers[probe] = Answer(False, 'ImportError: libGL.so.1: cannot open shared object file')
    assert report.main() == 1
    output = capsys.readouterr().out
    assert 'libGL.so.1' in output
    assert output.count('to fix it') == 1


def test_torch_is_blamed_for_what_needs_it(here, answers):
    lost = Answer(False, "ModuleNotFoundError: No module named 'torch'")
    answers.update(dict.fromkeys(PROBES, lost))
    answers.update(pkg_resources=FINE, opencv=FINE)
    del here['torch']
    rows = report.examine()
    broken = [row for row in rows if row.verdict == BROKEN]
    assert [row.what for row in broken if row.fix != 'fix torch first'] == ['torch']
    assert {row.what for row in broken} == {'torch', *report.NEED_TORCH}
    assert row_of(rows, 'torch').fix.endswith("pip install 'torch>=2.6'")


def test_hosts_and_mmcv_are_optional(here, answers):
    for name in (*HOST_PACKAGES, 'mmcv-lite'):
        del here[name]
    for probe in (*HOST_PACKAGES, 'operators'):
        answers[probe] = Answer(False, 'ModuleNotFoundError: no such module')
    rows = report.examine()
    assert report.main() == 0
    absent = {row.what: row for row in rows if row.verdict == ABSENT}
    assert list(absent) == ['mmcv', 'mmcv operators', *HOST_PACKAGES]
    assert "'mmdet>=3.3,<3.4'" in absent['mmdet'].fix
    assert absent['mmsegmentation'].fix.endswith(' ftfy regex')


def test_a_host_needs_mmcv(here, answers):
    row = row_of(report.examine(), 'mmcv')
    assert (row.verdict, row.found) == (OK, '2.1.0 (mmcv-lite)')
    del here['mmcv-lite']
    row = row_of(report.examine(), 'mmcv')
    assert row.verdict == BROKEN
    assert 'mmdet and mmsegmentation and mmpretrain' in row.problem
    assert "'mmcv-lite==2.1.0' torchvision 'torch==2.15.0'" in row.fix
    assert row.fix.endswith('-m ptnt_mm mmcv-ops install')


def test_mmcv_lite_over_a_compiled_mmcv(here, answers):
    here['mmcv'] = '2.1.0'
    row = row_of(report.examine(), 'mmcv')
    assert (row.verdict, row.found) == (OK, '2.1.0 and 2.1.0 (mmcv-lite)')
    here['mmcv'] = '2.0.1'
    row = row_of(report.examine(), 'mmcv')
    assert (row.verdict, 'share one folder' in row.problem) == (BROKEN, True)
    assert 'uninstall mmcv mmcv-lite' in row.fix


@pytest.mark.parametrize(('error', 'meaning'), [
    ("ModuleNotFoundError: No module named 'torchvision'", 'ours need torchvision'),
    ('RuntimeError: operator torchvision::nms does not exist', 'torchvision was compiled'),
    ('AcceleratorError: CUDA error: no kernel image is available', 'other GPUs'),
    ('RuntimeError: nms_impl: implementation for device cuda:0 not found', 'CPU only'),
    ('ImportError: _ext.so: undefined symbol: _ZN3c104', 'another torch'),
    ('it ended the process with SIGSEGV', 'they fail'),
])  # yapf: disable
def test_operators_that_fail(here, answers, error, meaning):
    answers['operators'] = Answer(False, error)
    row = row_of(report.examine(), 'mmcv operators')
    assert row.verdict == BROKEN
    assert meaning in row.problem
    assert error in row.problem
    assert 'mmcv-lite' in row.fix


def test_operators_that_the_hosts_own_commands_do_not_find(here, answers, capsys):
    answers['operators'] = Answer(True, 'ptnt_mm, offered: nms ran on cpu')
    assert report.main() == 0
    row = row_of(report.examine(), 'mmcv operators')
    assert (row.verdict, 'mmcv-ops install' in row.fix) == (ABSENT, True)
    assert "mmcv operators: mmdet's and mmseg's own commands do not" in capsys.readouterr().out


def test_operators_that_fail_matter_to_hosts_alone(here, answers):
    answers['operators'] = Answer(False, "ModuleNotFoundError: No module named 'torchvision'")
    for name in HOST_PACKAGES:
        del here[name]
    assert row_of(report.examine(), 'mmcv operators').verdict == ABSENT


def test_commands_for_an_environment_without_pip(here, answers, monkeypatch):
    here['torch'] = '2.5.0'
    monkeypatch.setattr(report, 'find_spec', lambda name: None)
    fix = row_of(report.examine(), 'torch').fix
    assert fix == f"uv pip install --python {sys.executable} 'torch>=2.6'"


def test_pkg_resources_is_needed_by_hosts_alone(here, answers):
    here['setuptools'] = '84.0.0'
    answers['pkg_resources'] = Answer(False, 'ModuleNotFoundError: no pkg_resources')
    row = row_of(report.examine(), 'setuptools')
    assert (row.verdict, "'setuptools<81'" in row.fix) == (BROKEN, True)
    for name in HOST_PACKAGES:
        del here[name]
    assert row_of(report.examine(), 'setuptools').verdict == ABSENT


def test_opencv_is_replaced_by_its_headless_build(here, answers):
    answers['opencv'] = Answer(False, 'ImportError: libGL.so.1: cannot open shared object file')
    row = row_of(report.examine(), 'OpenCV')
    assert f'opencv-python-headless=={TESTED["opencv-python"]}' in row.fix


@pytest.mark.parametrize(('error', 'advice'), [
    ('AcceleratorError: CUDA error: no kernel image is available', 'install one that was'),
    ('RuntimeError: torch cannot use the driver 535.1', 'update the NVIDIA driver'),
])  # yapf: disable
def test_a_gpu_that_torch_cannot_use(here, answers, error, advice):
    answers['cuda'] = Answer(False, error)
    row = row_of(report.examine(), 'CUDA')
    assert (row.verdict, advice in row.fix, 'PTNT_CUDA=0' in row.fix) == (BROKEN, True, True)


def test_unsafe_loading_is_broken(here, answers, monkeypatch):
    monkeypatch.setenv(UNSAFE_SWITCH, '1')
    assert report.main() == 1
    row = row_of(report.examine(), 'safe loading')
    assert (row.verdict, row.fix) == (BROKEN, f'unset {UNSAFE_SWITCH}')


VALUES = ('', '0', 'n', 'no', 'False', 'off', ' off ', '1', 'y', 'yes', 'True', 'on', '2', '?')


@pytest.mark.parametrize('value', VALUES)
def test_doctor_and_reader_agree_on_unsafe_loading(monkeypatch, value):
    from ptnt_mm.checkpoints.read import CheckpointError, refuse_forced_unsafe_loading

    monkeypatch.setenv(UNSAFE_SWITCH, value)
    try:
        refuse_forced_unsafe_loading()
    except CheckpointError:
        refused = True
    else:
        refused = False
    assert (report.safe_loading_row(value).verdict == BROKEN) == refused
    assert refused == (VALUES.index(value) > 6)


# The probes themselves, for real.


@pytest.mark.parametrize(('body', 'text'), [
    ('raise ImportError("libGL.so.1")', 'ImportError: libGL.so.1'),
    ('raise SystemExit(3)', 'it ended the process: it printed nothing'),
    ('import os; os.abort()', 'it ended the process with SIGABRT'),
    ('import time; time.sleep(60)', 'it gave no answer within 2 s'),
])  # yapf: disable
def test_a_probe_survives_what_it_imports(tmp_path, monkeypatch, body, text):
    (tmp_path / 'cv2.py').write_text(body)
    monkeypatch.setenv('PYTHONPATH', str(tmp_path))
    monkeypatch.setattr(probes, 'PROBE_SECONDS', 2)
    # The next probe runs all the same, in a process of its own.
    (tmp_path / 'pkg_resources.py').touch()
    assert list(probes.ask_probes(['opencv', 'pkg_resources'])) == [
        ('opencv', Answer(False, text)), ('pkg_resources', FINE),
    ]  # yapf: disable


def test_the_registry_is_found():
    [(_, answer)] = probes.ask_probes(['ptnt_mm'])
    assert answer.works, answer.text
    assert re.fullmatch(r'\d+\.\d+\.\d+, registered', answer.text)


def test_operators_run_on_the_cpu(monkeypatch):
    pytest.importorskip('mmcv.ops')
    monkeypatch.setenv('PTNT_CUDA', '0')
    [(_, answer)] = probes.ask_probes(['operators'])
    assert answer == Answer(True, f'{source().kind}: nms ran on cpu')
