"""`make setup`: the stamp, the checks before any download, mmcv's build, and what goes wrong there.

Nothing here downloads or compiles anything real.
"""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOLS = str(ROOT / 'tools')

sys.path.insert(0, TOOLS)  # for the imports alone: tools/test.py must not stay importable as `test`
try:
    import setup_checks
    import setup_cuda
    import setup_env
    import setup_mmcv
finally:
    sys.path.remove(TOOLS)

SetupError = setup_checks.SetupError


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
    for name in ('PTNT_CUDA', 'TORCH_CUDA_ARCH_LIST', 'MAX_JOBS'):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
    monkeypatch.setattr(setup_cuda, 'gpu_capabilities', lambda: ())
    monkeypatch.setattr(setup_checks, 'check_space', lambda root, cache: None)
    monkeypatch.setattr(setup_checks, 'check_compiler', lambda: None)
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
    monkeypatch.setattr(setup_env, 'install_all', lambda archs: done.append(('install', archs)))
    monkeypatch.setattr(setup_env, 'run', lambda command, complaint: done.append(command[-1]))
    return done


ALL_STEPS = ['venv', ('install', ()), 'ptnt_mm.doctor']


def write_program(path: Path, text: str) -> None:
    """An executable that prints a text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\ncat <<"END"\n{text}\nEND\n')
    path.chmod(0o755)


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

    def test_a_gpu_that_came_or_went(self, steps, monkeypatch, capsys):
        setup_env.main()
        monkeypatch.setattr(setup_cuda, 'gpu_capabilities', lambda: ('9.0',))
        monkeypatch.setattr(setup_checks, 'check_driver', lambda major: None)
        setup_env.main()
        assert steps[4] == ('install', ('9.0',))
        assert 'the GPUs to compile for' in capsys.readouterr().out

    def test_a_copied_environment_is_not_up_to_date(self, steps, monkeypatch, capsys):
        setup_env.main()
        stamped = json.loads(setup_env.STAMP.read_text())
        setup_env.STAMP.write_text(json.dumps({**stamped, 'the folder': '/elsewhere'}))
        setup_env.main()
        assert steps == ALL_STEPS * 2
        assert 'changed since the last setup: the folder' in capsys.readouterr().out

    def test_no_stamp_without_a_whole_environment(self, steps, monkeypatch):
        setup_env.main()
        setup_env.STAMP.write_text('{}')

        def stopped(archs):
            raise KeyboardInterrupt

        monkeypatch.setattr(setup_env, 'install_all', stopped)
        with pytest.raises(KeyboardInterrupt):
            setup_env.main()
        assert not setup_env.STAMP.exists()

    def test_no_stamp_if_the_doctor_complains(self, steps, monkeypatch):

        def run(command, complaint):
            raise SetupError(complaint)

        monkeypatch.setattr(setup_env, 'run', run)
        with pytest.raises(SetupError, match='something is broken'):
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
    def test_this_machine_passes(self, tmp_path, monkeypatch):
        monkeypatch.setattr(setup_checks, 'FULL_GB', 0)
        setup_checks.preflight(tmp_path, tmp_path / 'cache' / 'wheels')

    def test_nothing_is_made_before_the_checks_pass(self, steps, checkout, monkeypatch):
        monkeypatch.setattr(setup_checks.sysconfig, 'get_path', lambda name: '/no/such/include')
        with pytest.raises(SetupError, match='Python.h'):
            setup_env.main()
        assert steps == []
        assert not (checkout / '.venv').exists()

    def test_each_problem_is_one_line(self, tmp_path, monkeypatch):
        monkeypatch.setattr(setup_checks, 'FULL_GB', 10**9)
        monkeypatch.setattr(setup_checks.importlib.util, 'find_spec', lambda name: None)
        monkeypatch.setattr(setup_checks.sysconfig, 'get_path', lambda name: '/no/such/include')
        monkeypatch.setenv('CXX', 'no-such-compiler')
        with pytest.raises(SetupError) as error:
            setup_checks.preflight(tmp_path, tmp_path)
        lines = str(error.value).splitlines()
        signs = ('ensurepip', 'no /no/such/include/Python.h', 'no-such-compiler', 'GB are free')
        assert len(lines) == len(signs)
        for line, sign in zip(lines, signs, strict=True):
            assert sign in line
        for line in lines[:3]:
            assert 'apt-get install' in line

    def test_a_compiler_without_cpp17(self, tmp_path, monkeypatch):
        compiler = tmp_path / 'old-compiler'
        compiler.write_text('#!/bin/sh\necho "unknown option -std=c++17" >&2\nexit 1\n')
        compiler.chmod(0o755)
        monkeypatch.setenv('CXX', str(compiler))
        with pytest.raises(SetupError, match=r'old-compiler.*unknown option -std=c\+\+17'):
            setup_checks.check_compiler()

    def test_a_folder_that_cannot_be_written(self, tmp_path, monkeypatch):
        monkeypatch.setattr(setup_checks.os, 'access', lambda path, mode: False)
        with pytest.raises(SetupError, match=f'cannot write to {tmp_path}: make it yours'):
            setup_checks.check_writable(tmp_path / 'not' / 'there')

    def test_less_space_is_needed_where_torch_is(self, tmp_path, monkeypatch):
        free = SimpleNamespace(free=3e9)
        monkeypatch.setattr(setup_checks.shutil, 'disk_usage', lambda path: free)
        with pytest.raises(SetupError, match=f'3.0 GB are free .* {setup_checks.FULL_GB} GB are'):
            setup_checks.check_space(tmp_path, tmp_path / 'cache')
        torch = tmp_path / '.venv' / 'lib' / 'python3.11' / 'site-packages' / 'torch'
        torch.mkdir(parents=True)
        (torch / 'version.py').touch()
        setup_checks.check_space(tmp_path, tmp_path / 'cache')

    def test_a_driver_that_is_too_old(self, tmp_path, monkeypatch):
        write_program(tmp_path / 'nvidia-smi', '| Driver Version: 535.1   CUDA Version: 12.2 |')
        monkeypatch.setenv('PATH', str(tmp_path), prepend=os.pathsep)
        with pytest.raises(SetupError, match=r'knows CUDA 12\.2.*CUDA 13.*PTNT_CUDA=0'):
            setup_checks.check_driver(13)
        setup_checks.check_driver(12)

    def test_an_old_python_gets_one_line(self):
        """The file must be readable for it down to its first check, so nothing newer than 3.6."""
        import ast

        source = (ROOT / 'tools' / 'setup_env.py').read_text()
        ast.parse(source, feature_version=(3, 6))
        assert 'annotations' not in source.split('def main')[0]
        gate = source.split('import contextlib')[0]
        old = f'import sys; sys.version_info = (3, 8, 1); exec({gate!r})'
        done = subprocess.run([sys.executable, '-c', old], capture_output=True, text=True)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1
        assert 'is 3.8' in done.stderr
        assert 'make setup PYTHON=' in done.stderr


class TestArchs:
    @pytest.fixture(autouse=True)
    def machine(self, monkeypatch):
        monkeypatch.setattr(setup_cuda, 'gpu_capabilities', lambda: ('8.6', '9.0'))

    def test_what_the_machine_has(self):
        assert setup_cuda.wanted_archs({}) == ('8.6', '9.0')

    def test_the_list_alone_changes_nothing(self):
        assert setup_cuda.wanted_archs({'TORCH_CUDA_ARCH_LIST': '7.5'}) == ('8.6', '9.0')

    def test_the_cpu_on_request(self):
        assert setup_cuda.wanted_archs({'PTNT_CUDA': '0', 'TORCH_CUDA_ARCH_LIST': '9.0'}) == ()

    def test_named_gpus(self):
        environ = {'PTNT_CUDA': '1', 'TORCH_CUDA_ARCH_LIST': '9.0+PTX;8.0 8.0'}
        assert setup_cuda.wanted_archs(environ) == ('8.0', '9.0+PTX')

    def test_gpus_wanted_and_none_known(self, monkeypatch):
        monkeypatch.setattr(setup_cuda, 'gpu_capabilities', lambda: ())
        with pytest.raises(SetupError, match='TORCH_CUDA_ARCH_LIST='):
            setup_cuda.wanted_archs({'PTNT_CUDA': '1'})

    def test_other_settings(self):
        with pytest.raises(SetupError, match="PTNT_CUDA is 'yes'"):
            setup_cuda.wanted_archs({'PTNT_CUDA': 'yes'})


class TestCuda:
    def toolkit(self, home: Path, release: str) -> Path:
        answer = f'Cuda compilation tools, release {release}, V1\ncompute_80\ncompute_90'
        write_program(home / 'bin' / 'nvcc', answer)
        (home / 'include').mkdir()
        (home / 'include' / 'cuda_runtime.h').touch()
        return home

    def test_capabilities_from_the_driver(self, tmp_path, monkeypatch):
        monkeypatch.setenv('PATH', str(tmp_path), prepend=os.pathsep)
        write_program(tmp_path / 'nvidia-smi', '9.0\n8.6\n9.0')
        assert setup_cuda.gpu_capabilities() == ('8.6', '9.0')
        write_program(tmp_path / 'nvidia-smi', 'No devices were found')
        assert setup_cuda.gpu_capabilities() == ()

    def test_no_driver(self, tmp_path, monkeypatch):
        monkeypatch.setenv('PATH', str(tmp_path))
        assert setup_cuda.gpu_capabilities() == ()

    def test_the_toolkit_of_torchs_major_version(self, tmp_path, monkeypatch):
        monkeypatch.setattr(setup_cuda.shutil, 'which', lambda name: None)
        monkeypatch.setattr(setup_cuda.Path, 'glob', lambda self, pattern: [])
        home = self.toolkit(tmp_path / 'cuda', '41.1')
        assert setup_cuda.system_toolkit('41.0', {'CUDA_HOME': str(home)}) == home
        assert setup_cuda.system_toolkit('42.0', {'CUDA_HOME': str(home)}) is None

    def test_a_toolkit_without_headers_is_none(self, tmp_path):
        write_program(tmp_path / 'bin' / 'nvcc', 'release 13.0, V13')
        assert setup_cuda.toolkit_version(tmp_path) == ''

    def test_the_packages_where_the_system_has_none(self, tmp_path, monkeypatch):
        monkeypatch.setattr(setup_cuda, 'system_toolkit', lambda torch_cuda: None)
        packages = tmp_path / 'lib' / 'python3.11' / 'site-packages'
        packages.mkdir(parents=True)
        wanted = []

        def install(requirement):
            wanted.append(requirement)
            home = self.toolkit(packages / 'nvidia' / 'cu13', '13.0')
            (home / 'lib').mkdir()
            (home / 'lib' / 'libcudart.so.13').touch()

        python = tmp_path / 'bin' / 'python'
        home = setup_cuda.find_toolkit(('9.0', '8.0+PTX'), '13.0', python, install)
        assert wanted == [setup_cuda.TOOLKIT]
        assert (home / 'lib64' / 'libcudart.so').resolve() == home / 'lib' / 'libcudart.so.13'
        environment = setup_cuda.build_environment(('8.0', '9.0'), home)
        assert environment == {
            'FORCE_CUDA': '1',
            'TORCH_CUDA_ARCH_LIST': '8.0;9.0',
            'CUDA_HOME': str(home),
        }

    def test_packages_without_a_toolkit(self, tmp_path):
        with pytest.raises(SetupError, match='no whole toolkit .* PTNT_CUDA=0; make setup'):
            setup_cuda.complete_packaged_toolkit(tmp_path, '12.6')

    def test_a_gpu_that_cuda_no_longer_knows(self, tmp_path):
        home = self.toolkit(tmp_path, '13.0')
        setup_cuda.check_archs(('8.0', '9.0+PTX'), home, '13.0')
        with pytest.raises(SetupError, match=r'capability 6\.1.*PTNT_CUDA=0; make setup'):
            setup_cuda.check_archs(('6.1', '9.0'), home, '13.0')

    def test_a_torch_without_cuda(self):
        with pytest.raises(SetupError, match='this torch has no CUDA'):
            setup_cuda.find_toolkit(('9.0',), None, Path('python'), lambda requirement: None)

    def test_no_gpu_may_be_seen_when_compiling_for_the_cpu(self):
        assert setup_cuda.build_environment((), None) == {
            'FORCE_CUDA': '0',
            'CUDA_VISIBLE_DEVICES': '',
        }


class TestCache:
    def test_key_tells_builds_apart(self):
        builds = [
            ('2.1.0', '2.11.0+cu130', setup_cuda.label((), '13.0')),
            ('2.1.0', '2.11.0+cpu', setup_cuda.label((), None)),
            ('2.1.0', '2.12.0+cu130', 'cpu'),
            ('2.1.1', '2.11.0+cu130', 'cpu'),
            ('2.1.0', '2.11.0+cu130', setup_cuda.label(('9.0',), '13.0')),
            ('2.1.0', '2.11.0+cu130', setup_cuda.label(('8.6', '9.0'), '13.0')),
            ('2.1.0', '2.11.0+cu130', setup_cuda.label(('9.0',), '13.1')),
        ]
        keys = {setup_mmcv.cache_key(*build) for build in builds}
        assert len(keys) == len(builds)
        assert all('/' not in key and f'cp3{sys.version_info[1]}-' in key for key in keys)

    def test_a_kept_wheel_is_found_whole(self, checkout, monkeypatch):
        wheel = checkout / 'mmcv-2.1.0-cp311-cp311-linux_x86_64.whl'
        wheel.write_bytes(b'wheel')
        assert setup_mmcv.cached_wheel('key') is None
        kept = setup_mmcv.keep_wheel(wheel, 'key')
        assert setup_mmcv.cached_wheel('key') == kept
        assert kept.is_relative_to(checkout / 'cache' / 'ptnt_mm' / 'wheels' / 'key')
        assert (kept.name, kept.read_bytes()) == (wheel.name, b'wheel')

    def test_a_copy_that_breaks_off_leaves_nothing(self, checkout, monkeypatch):

        def no_space(source, target):
            Path(target).write_bytes(b'wh')
            raise OSError('No space left on device')

        monkeypatch.setattr(setup_mmcv.shutil, 'copyfile', no_space)
        with pytest.raises(OSError, match='No space'):
            setup_mmcv.keep_wheel(checkout / 'mmcv.whl', 'key')
        assert list((checkout / 'cache' / 'ptnt_mm' / 'wheels' / 'key').iterdir()) == []

    def test_a_kept_wheel_is_installed_and_not_built(self, checkout, monkeypatch, capsys):
        installed = []
        monkeypatch.setattr(setup_env, 'install', lambda *wanted: installed.append(wanted))
        monkeypatch.setattr(setup_env, 'output_of', lambda code: '["2.11.0+cu130", "13.0"]')
        wheel = checkout / 'mmcv-2.1.0.whl'
        wheel.touch()
        kept = setup_mmcv.keep_wheel(wheel, setup_mmcv.cache_key('2.1.0', '2.11.0+cu130', 'cpu'))
        setup_env.install_mmcv(())
        assert installed == [('--no-deps', '--force-reinstall', str(kept))]
        with pytest.raises(BuildWanted):
            monkeypatch.setattr(setup_mmcv, 'build_wheel', raise_build_wanted)
            monkeypatch.setattr(setup_cuda, 'find_toolkit', lambda *given: Path('/cuda'))
            setup_env.install_mmcv(('9.0',))
        assert 'for GPUs of compute capability 9.0: about' in capsys.readouterr().out


class BuildWanted(Exception):
    """Setup would build mmcv now."""


def raise_build_wanted(*given):
    raise BuildWanted


class Terminal(io.StringIO):
    def isatty(self):
        return True


class TestProgress:
    LINES = [f'  [{index}/77] c++ -MMD -c -c file{index}.cpp\n' for index in range(1, 78)]

    def feed(self, stream, seconds_per_line):
        times = iter(range(0, 10**6, seconds_per_line))
        progress = setup_mmcv.Progress(stream, lambda: next(times))
        for line in ('running build_ext\n', *self.LINES, 'creating mmcv.whl [1/2]\n'):
            progress.feed(line)
        progress.close()
        return stream.getvalue()

    def test_in_place_on_a_terminal(self):
        text = self.feed(Terminal(), 8)
        assert text.count('\r') == 77
        assert text.count('\n') == 1
        assert text.endswith('setup: mmcv: 77 of 77 files, 10:16 min, linking\n')

    def test_a_line_now_and_then_elsewhere(self):
        lines = self.feed(io.StringIO(), 8).splitlines()
        assert '\r' not in ''.join(lines)
        assert 15 <= len(lines) <= 20
        assert lines[4] == 'setup: mmcv: 20 of 77 files, 2:40 min, about 8 min left'

    def test_no_forecast_from_the_first_files(self):
        assert setup_mmcv.Progress.describe(1, 77, 40) == 'mmcv: 1 of 77 files, 0:40 min'

    def test_forecast_counts_cores_and_gpus(self, monkeypatch):
        monkeypatch.setenv('MAX_JOBS', '2')
        assert setup_mmcv.minutes(()) == 10
        assert setup_mmcv.minutes(('8.6', '9.0')) > setup_mmcv.minutes(('9.0',)) > 20
        monkeypatch.setenv('MAX_JOBS', '20')
        assert setup_mmcv.minutes(()) == 1


class TestJobs:
    def test_max_jobs(self, monkeypatch):
        monkeypatch.setenv('MAX_JOBS', '3')
        assert setup_mmcv.jobs() == 3
        for wrong in ('0', 'all', '-1'):
            monkeypatch.setenv('MAX_JOBS', wrong)
            with pytest.raises(SetupError, match='number of compilers'):
                setup_mmcv.jobs()

    @pytest.mark.parametrize(
        ('cores', 'gigabytes', 'jobs'), [(8, 100.0, 8), (8, 5.0, 2), (2, 0.5, 1)]
    )
    def test_cores_and_memory(self, monkeypatch, cores, gigabytes, jobs):
        monkeypatch.delenv('MAX_JOBS', raising=False)
        monkeypatch.setattr(setup_mmcv, 'usable_cores', lambda: cores)
        monkeypatch.setattr(setup_mmcv, 'free_gigabytes', lambda: gigabytes)
        assert setup_mmcv.jobs() == jobs

    def test_a_containers_limits(self, tmp_path, monkeypatch):
        monkeypatch.setattr(setup_mmcv.os, 'sched_getaffinity', lambda pid: set(range(64)))
        quota, memory, limit = (tmp_path / name for name in ('cpu.max', 'meminfo', 'memory.max'))
        memory.write_text('MemTotal: 99 kB\nMemAvailable:   64000000 kB\n')
        for text, cores in (('150000 100000\n', 1), ('400000 100000\n', 4), ('max 100000\n', 64)):
            quota.write_text(text)
            assert setup_mmcv.usable_cores(quota) == cores
        assert setup_mmcv.usable_cores(tmp_path / 'missing') == 64
        for text, gigabytes in (('4000000000\n', 4), ('max\n', 64)):
            limit.write_text(text)
            assert setup_mmcv.free_gigabytes(memory, limit) == gigabytes


class TestBuild:
    @pytest.fixture
    def pip(self, tmp_path, monkeypatch):
        """A python whose `-m pip` runs a script of the test's choice."""
        monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path / 'cache'))
        monkeypatch.setenv('MAX_JOBS', '2')
        source = tmp_path / 'mmcv-2.1.0'
        source.mkdir()
        (source / 'setup.py').touch()
        subprocess.run(['tar', 'czf', 'sdist.tar.gz', 'mmcv-2.1.0'], cwd=tmp_path, check=True)
        python = tmp_path / 'bin' / 'python'
        python.parent.mkdir()

        def script(wheel_step):
            python.write_text(
                '#!/bin/sh\n'
                f'echo "$3 $MAX_JOBS $MMCV_WITH_OPS $FORCE_CUDA" >> {tmp_path}/calls\n'
                'case "$*" in\n'
                f'  *download*) mkdir -p {tmp_path}/build '
                f'&& cp {tmp_path}/sdist.tar.gz {tmp_path}/build/mmcv-2.1.0.tar.gz;;\n'
                f'  *) {wheel_step};;\nesac\n'
            )
            python.chmod(0o755)
            return python

        return script

    def build(self, tmp_path, python):
        folder = tmp_path / 'build'
        return setup_mmcv.build_wheel(python, '2.1.0', 'key', {'FORCE_CUDA': '0'}, folder)

    def test_a_build_that_works(self, tmp_path, pip, capsys):
        folder = tmp_path / 'build' / 'wheel'
        made = f'echo "  [77/77] c++"; mkdir {folder}; touch {folder}/mmcv.whl'
        wheel = self.build(tmp_path, pip(made))
        assert wheel == setup_mmcv.cached_wheel('key')
        assert not (tmp_path / 'build').exists()
        assert (tmp_path / 'calls').read_text() == 'download 2 1 0\nwheel 2 1 0\n'
        assert 'mmcv: 77 of 77 files' in capsys.readouterr().out

    def test_a_build_that_fails_goes_on_where_it_stopped(self, tmp_path, pip):
        failing = pip('echo "nms.cpp:12:5: error: no such thing"; echo "ERROR: Failed"; exit 1')
        with pytest.raises(SetupError) as error:
            self.build(tmp_path, failing)
        lines = str(error.value).splitlines()
        assert lines[0] == 'mmcv could not be compiled:'
        assert lines[1:3] == ['  nms.cpp:12:5: error: no such thing', '  ERROR: Failed']
        assert lines[3] == f'The whole log: {tmp_path}/build.log'
        with pytest.raises(SetupError):
            self.build(tmp_path, failing)
        steps = [line.split()[0] for line in (tmp_path / 'calls').read_text().splitlines()]
        assert steps == ['download', 'wheel', 'wheel']
        assert setup_mmcv.cached_wheel('key') is None

    def test_too_little_memory_is_named(self, tmp_path, pip):
        with pytest.raises(SetupError, match='out of memory: try MAX_JOBS=1 make setup'):
            self.build(tmp_path, pip('echo "c++: fatal error: Killed signal terminated"; exit 1'))

    def test_an_unexplained_failure_shows_the_end(self, tmp_path, pip):
        with pytest.raises(SetupError, match='\n  line 30\nThe whole log'):
            self.build(tmp_path, pip('for i in $(seq 30); do echo "line $i"; done; exit 1'))


class TestInstall:
    @pytest.fixture
    def calls(self, checkout, monkeypatch):
        """Commands that setup ran; those with `fails` in their list of tools fail."""
        record = SimpleNamespace(commands=[], fails=(), stderr='')

        def run(command, **options):
            command = [str(part) for part in command]
            record.commands.append(command)
            code = int(any(tool in command for tool in record.fails))
            return SimpleNamespace(returncode=code, stdout='', stderr=record.stderr)

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

    def test_headless_opencv_where_libraries_are_missing(self, calls, capsys):
        calls.stderr = (
            'Traceback\nImportError: libGL.so.1: cannot open shared object file: No such file\n'
        )
        setup_env.replace_opencv_without_libraries()
        assert calls.commands[1][3] == 'uninstall'
        pinned = setup_env.pinned('opencv-python')
        assert calls.commands[2][-1] == f'opencv-python-headless=={pinned}'
        assert capsys.readouterr().out.startswith('setup: libGL.so.1 is not on this system')

    def test_opencv_stays_where_it_works(self, calls):
        setup_env.replace_opencv_without_libraries()
        assert len(calls.commands) == 1

    def test_venv_of_another_python_is_made_anew(self, calls, checkout, monkeypatch):
        venv = checkout / '.venv'
        (venv / 'lib').mkdir(parents=True)
        (venv / 'pyvenv.cfg').touch()
        (venv / setup_env.LOCK).touch()
        setup_env.make_venv()
        assert [path.name for path in venv.iterdir()] == [setup_env.LOCK]
        assert calls.commands[-1][1:3] == ['-m', 'venv']

    def test_venv_of_this_python_stays(self, checkout, monkeypatch):
        monkeypatch.setattr(setup_env, 'run', lambda *given: pytest.fail('it was made anew'))
        write_program(setup_env.PYTHON, '{}.{}'.format(*sys.version_info[:2]))
        (setup_env.VENV / 'pyvenv.cfg').touch()
        setup_env.make_venv()

    def test_a_broken_python_in_the_venv(self, checkout):
        write_program(setup_env.PYTHON, 'nothing')
        setup_env.PYTHON.write_text('#!/bin/sh\necho "no module" >&2\nexit 1\n')
        with pytest.raises(SetupError, match='no module.*rm -r .venv && make setup'):
            setup_env.output_of('import torch')


def test_constraints_are_exact_and_name_no_host():
    text = (ROOT / 'requirements' / 'constraints.txt').read_text()
    lines = [line for line in text.splitlines() if not line.startswith('#')]
    assert len(lines) > 50
    for line in lines:
        name, version = line.split('==')
        assert name == name.lower()
        assert version[0].isdecimal()
    for sign in ('://', '@', '--index', '--find-links'):
        assert sign not in text.replace('--no-emit-index-url', '')
