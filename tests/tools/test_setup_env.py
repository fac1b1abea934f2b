"""`make setup`: the stamp, what it finds out before any download, and what goes wrong there.

Nothing here downloads anything.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]

_spec = importlib.util.spec_from_file_location('setup_env', ROOT / 'tools' / 'setup_env.py')
setup_env = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(setup_env)
SetupError = setup_env.SetupError


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with the stamped files, and no `.venv`."""
    for name in setup_env.STAMPED:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    venv = tmp_path / '.venv'
    for name, value in {
        'ROOT': tmp_path,
        'VENV': venv,
        'PYTHON': venv / 'bin' / 'python',
        'STAMP': venv / '.ptnt_mm-stamp.json',
        'CONSTRAINTS': tmp_path / 'requirements' / 'constraints.txt',
    }.items():
        monkeypatch.setattr(setup_env, name, value)
    monkeypatch.setenv('UV_CACHE_DIR', str(tmp_path / 'cache'))
    monkeypatch.setattr(setup_env, 'NEEDED_GB', 0)
    return tmp_path


@pytest.fixture
def steps(checkout, monkeypatch):
    """The slow steps of setup, recorded instead of done."""
    done = []

    def make_venv():
        done.append('venv')
        setup_env.PYTHON.parent.mkdir(parents=True, exist_ok=True)
        setup_env.PYTHON.touch()

    monkeypatch.setattr(setup_env, 'make_venv', make_venv)
    monkeypatch.setattr(setup_env, 'install_all', lambda: done.append('install'))
    monkeypatch.setattr(
        setup_env, 'run_command', lambda command, complaint: done.append(command[2:])
    )
    return done


ALL_STEPS = ['venv', 'install', ['ptnt_mm', 'mmcv-ops', 'install'], ['ptnt_mm.doctor']]


class TestStamp:
    def test_second_run_does_nothing(self, steps, capsys):
        setup_env.main()
        assert steps == ALL_STEPS
        setup_env.main()
        assert steps == ALL_STEPS
        assert capsys.readouterr().out.splitlines()[-1] == 'setup: .venv is up to date'

    @pytest.mark.parametrize('name', setup_env.STAMPED)
    def test_a_changed_file_is_named(self, steps, checkout, capsys, name):
        setup_env.main()
        (checkout / name).write_text((checkout / name).read_text() + '\n# changed\n')
        setup_env.main()
        assert steps == ALL_STEPS * 2
        assert f'changed since the last setup: {name}' in capsys.readouterr().out

    def test_a_copied_environment_is_not_up_to_date(self, steps, capsys):
        setup_env.main()
        stamped = json.loads(setup_env.STAMP.read_text())
        setup_env.STAMP.write_text(json.dumps({**stamped, 'the folder': '/elsewhere'}))
        setup_env.main()
        assert steps == ALL_STEPS * 2
        assert 'changed since the last setup: the folder' in capsys.readouterr().out

    def test_no_stamp_without_a_whole_environment(self, steps, monkeypatch):
        setup_env.main()
        setup_env.STAMP.write_text('{}')

        def stopped():
            raise KeyboardInterrupt

        monkeypatch.setattr(setup_env, 'install_all', stopped)
        with pytest.raises(KeyboardInterrupt):
            setup_env.main()
        assert not setup_env.STAMP.exists()

    def test_no_stamp_if_the_doctor_complains(self, steps, monkeypatch):

        def run(command, complaint):
            raise SetupError(complaint)

        monkeypatch.setattr(setup_env, 'run_command', run)
        with pytest.raises(SetupError):
            setup_env.main()
        assert not setup_env.STAMP.exists()

    def test_a_broken_stamp_is_no_stamp(self, steps):
        setup_env.main()
        setup_env.STAMP.write_text('[1')
        setup_env.main()
        assert steps == ALL_STEPS * 2

    def test_two_setups_at_once(self, steps):
        with setup_env.only_one_setup(), pytest.raises(SetupError, match='another setup'):
            setup_env.main()
        assert steps == []


class TestChecks:
    def test_a_full_disk_is_found_before_anything_is_made(self, steps, checkout, monkeypatch):
        monkeypatch.setattr(setup_env, 'NEEDED_GB', 10**9)
        with pytest.raises(SetupError, match=f'GB are free at {checkout}, and {10**9} GB are'):
            setup_env.main()
        assert steps == []

    def test_the_download_cache_may_be_on_the_full_disk(self, checkout, monkeypatch):
        free = {checkout: 9e9, checkout.parent: 3e9}
        monkeypatch.setenv('UV_CACHE_DIR', str(checkout.parent / 'not' / 'there'))
        monkeypatch.setattr(setup_env, 'NEEDED_GB', 7)
        monkeypatch.setattr(
            setup_env.shutil, 'disk_usage', lambda path: SimpleNamespace(free=free[path])
        )
        with pytest.raises(SetupError, match=f'3.0 GB are free at {checkout.parent}, .*UV_CACHE'):
            setup_env.check_space()
        torch = setup_env.VENV / 'lib' / 'python3.11' / 'site-packages' / 'torch'
        torch.mkdir(parents=True)
        (torch / 'version.py').touch()
        setup_env.check_space()

    def test_an_old_python_gets_one_line(self):
        """The file must be readable for it down to its first check, so nothing newer than 3.6."""
        import ast

        source = (ROOT / 'tools' / 'setup_env.py').read_text()
        ast.parse(source, feature_version=(3, 6))
        gate = source.split('import contextlib')[0]
        for version in ((3, 8, 1), (3, 14, 0)):
            other = f'import sys; sys.version_info = {version}; exec({gate!r})'
            done = subprocess.run([sys.executable, '-c', other], capture_output=True, text=True)
            assert done.returncode == 1
            assert len(done.stderr.splitlines()) == 1
            assert 'is {}.{}. Install'.format(*version) in done.stderr
            assert 'make setup PYTHON=' in done.stderr

    def test_a_folder_that_cannot_be_written(self, tmp_path):
        """Run as the user runs it, from a checkout with a folder where its lock has to be."""
        (tmp_path / '.setup.lock').mkdir()
        for name in setup_env.STAMPED:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes((ROOT / name).read_bytes())
        command = [sys.executable, str(tmp_path / 'tools' / 'setup_env.py')]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 1
        assert re.fullmatch(r'setup: .*Is a directory.*\.setup\.lock.*\n', done.stderr)


class TestInstall:
    @pytest.fixture
    def calls(self, checkout, monkeypatch):
        """Commands that setup ran; those with `fails` in their list of tools fail."""
        record = SimpleNamespace(commands=[], fails=(), stdout='', stderr='')

        def run(command, **options):
            command = [str(part) for part in command]
            record.commands.append(command)
            code = int(any(tool in command for tool in record.fails))
            return SimpleNamespace(returncode=code, stdout=record.stdout, stderr=record.stderr)

        monkeypatch.setattr(setup_env.subprocess, 'run', run)
        return record

    def test_uv_first(self, calls, checkout):
        setup_env.install('torch')
        (command,) = calls.commands
        assert command[0] == str(checkout / '.venv' / 'bin' / 'uv')
        assert command[-1] == 'torch'
        constraints = command[command.index('-c') + 1]
        assert constraints == str(checkout / 'requirements' / 'constraints.txt')

    def test_pip_where_uv_fails(self, calls, checkout, capsys):
        calls.fails = (str(checkout / '.venv' / 'bin' / 'uv'),)
        setup_env.install('torch')
        assert calls.commands[1][1:4] == ['-m', 'pip', 'install']
        assert 'trying pip' in capsys.readouterr().out

    def test_both_fail(self, calls):
        calls.fails = ('install',)
        with pytest.raises(SetupError, match='pip could not install torch numpy'):
            setup_env.install('torch', 'numpy')

    def test_no_network(self, calls):
        calls.fails = ('pip',)
        with pytest.raises(SetupError, match='is there a network'):
            setup_env.install_all()
        assert len(calls.commands) == 1

    def test_headless_opencv_where_libraries_are_missing(self, calls, capsys):
        calls.stderr = (
            'Traceback\nImportError: libGL.so.1: cannot open shared object file: No such file\n'
        )
        setup_env.replace_opencv_without_libraries()
        assert calls.commands[1][3] == 'uninstall'
        assert re.fullmatch(r'opencv-python-headless==[\d.]+', calls.commands[2][-1])
        assert capsys.readouterr().out.startswith('setup: libGL.so.1 is not on this system')

    def test_opencv_stays_where_it_works(self, calls):
        setup_env.replace_opencv_without_libraries()
        assert len(calls.commands) == 1

    @pytest.mark.parametrize('found', ['3.9\n', ''])
    def test_venv_of_another_python_is_made_anew(self, calls, found):
        calls.stdout = found
        setup_env.PYTHON.parent.mkdir(parents=True)
        setup_env.PYTHON.touch()
        setup_env.make_venv()
        assert calls.commands[-1][1:4] == ['-m', 'venv', '--clear']

    def test_venv_of_this_python_stays(self, calls):
        calls.stdout = '{}.{}\n'.format(*sys.version_info[:2])
        setup_env.PYTHON.parent.mkdir(parents=True)
        setup_env.PYTHON.touch()
        setup_env.make_venv()
        assert len(calls.commands) == 1


@pytest.mark.parametrize('name', ['constraints', 'oldest'])
def test_constraints_are_exact_and_name_no_host(name):
    text = (ROOT / 'requirements' / f'{name}.txt').read_text()
    lines = [line for line in text.splitlines() if not line.startswith('#')]
    assert len(lines) > 50
    for line in lines:
        name, version = line.split(' ; ')[0].split('==')
        assert name == name.lower()
        assert version[0].isdecimal()
    for sign in ('://', '@', '--index', '--find-links'):
        assert sign not in text.replace('--no-emit-index-url', '')


class TestMakefile:
    """Which Python `make setup` takes, of programs that only pretend to be one."""

    @pytest.fixture
    def folder(self, tmp_path):
        (tmp_path / 'Makefile').write_bytes((ROOT / 'Makefile').read_bytes())
        for name in ('sh', 'make'):
            for place in os.get_exec_path():
                if (program := Path(place, name)).exists():
                    (tmp_path / 'bin').mkdir(exist_ok=True)
                    (tmp_path / 'bin' / name).symlink_to(program)
                    break
        return tmp_path

    def chosen(self, folder: Path, **statuses: int) -> str:
        """Ask make, on a machine with these Pythons, given as the exit status of each."""
        for name, status in statuses.items():
            program = folder / 'bin' / name.replace('_', '.')
            program.write_text(f'#!/bin/sh\nexit {status}\n')
            program.chmod(0o755)
        environment = {'PATH': str(folder / 'bin')}
        command = ['make', '--dry-run', 'setup']
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.split()[0]

    def test_the_newest(self, folder):
        assert self.chosen(folder, python3_13=0, python3_12=0) == 'python3.13'

    def test_not_one_that_does_not_run(self, folder):
        assert self.chosen(folder, python3_13=127, python3_11=0, python3=0) == 'python3.11'

    def test_the_system_s_where_none_runs_so_that_setup_says_why(self, folder):
        assert self.chosen(folder, python3_13=1) == 'python3'

    def test_that_of_the_environment_comes_first(self, folder):
        python = folder / '.venv' / 'bin' / 'python'
        python.parent.mkdir(parents=True)
        python.write_text('#!/bin/sh\n')
        python.chmod(0o755)
        assert self.chosen(folder, python3_13=0) == '.venv/bin/python'
