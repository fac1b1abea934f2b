"""Make `.venv` with the exact, tested versions, for `make setup`. Only the standard library.

What it does, in order: look whether all is there (the stamp), check what would fail later, make the
environment, install torch, build mmcv, install the rest, show `python -m ptnt_mm.doctor`, write the
stamp. The stamp comes last, so an interrupted run is never taken for a whole one, and the next run
uses what is there already.

Environment variables: PTNT_CUDA=0 compiles mmcv for the CPU only, PTNT_CUDA=1 with
TORCH_CUDA_ARCH_LIST="9.0" compiles for GPUs which this machine does not have, MAX_JOBS bounds the
compilers that run at once, CXX names the compiler, CUDA_HOME the CUDA toolkit.
"""

import sys

if not (3, 11) <= sys.version_info[:2] <= (3, 12):
    sys.exit(
        'setup: ptnt_mm needs Python 3.11 or 3.12, and {} is {}.{}. Install one and name it: '
        'make setup PYTHON=/path/to/python3.12'.format(sys.executable, *sys.version_info[:2])
    )

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import setup_checks
import setup_cuda
import setup_mmcv
from setup_checks import SetupError, say

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / '.venv'
PYTHON = VENV / 'bin' / 'python'
STAMP = VENV / '.ptnt_mm-stamp.json'
LOCK = '.setup.lock'
CONSTRAINTS = ROOT / 'requirements' / 'constraints.txt'

# A change of any of these can change what is installed.
STAMPED = (
    'requirements/constraints.txt',
    'setup.py',
    'pyproject.toml',
    'ptnt_mm/version.py',
    'tools/setup_env.py',
    'tools/setup_checks.py',
    'tools/setup_cuda.py',
    'tools/setup_mmcv.py',
)

# mmcv is compiled against this torch, so torch and the build tools come before all else.
FOUNDATION = ('torch', 'torchvision', 'numpy', 'setuptools', 'wheel', 'ninja')
EXTRAS = '.[det,seg,dev]'

# Variables of the caller that would lead the installers or the compiler elsewhere: another
# environment's packages, and the orders of the make that runs us, which ninja would obey.
MISLEADING = ('PYTHONPATH', 'PYTHONHOME', 'MAKEFLAGS', 'MFLAGS')


def main() -> None:
    """Bring `.venv` up to date, in well under 5 seconds where it is already."""
    for name in MISLEADING:
        os.environ.pop(name, None)
    archs = setup_cuda.wanted_archs()
    marks = fingerprint(archs)
    if PYTHON.exists():
        changed = stamp_difference(marks)
        if changed == []:
            say('.venv is up to date')
            return
        if changed:
            say(f'changed since the last setup: {", ".join(changed)}')
    setup_checks.preflight(ROOT, setup_mmcv.cache_folder())
    if archs:
        setup_checks.check_driver(int(pinned('cuda-toolkit').split('.')[0]))
    with only_one_setup():
        STAMP.unlink(missing_ok=True)
        make_venv()
        install_all(archs)
        say('what python -m ptnt_mm.doctor finds:')
        run([PYTHON, '-m', 'ptnt_mm.doctor'], 'something is broken')
        write_stamp(marks)
    say('done')


def fingerprint(archs: tuple[str, ...]) -> dict[str, str]:
    """Tell what the environment depends on, by name."""
    marks = {name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in STAMPED}
    marks['the Python version'] = '{}.{}'.format(*sys.version_info[:2])
    marks['the GPUs to compile for'] = ' '.join(archs) or 'none'
    # A copied .venv still points to the folder which it was made in.
    marks['the folder'] = str(ROOT)
    return marks


def stamp_difference(marks: dict[str, str]) -> 'list[str] | None':
    """Name what changed since the stamp was written; None without a usable stamp."""
    try:
        stamped = json.loads(STAMP.read_text(encoding='utf-8'))
        return sorted(name for name in marks if stamped.get(name) != marks[name])
    except (OSError, ValueError, AttributeError):
        return None


def write_stamp(marks: dict[str, str]) -> None:
    """Mark the environment as whole."""
    temporary = STAMP.with_suffix('.tmp')
    temporary.write_text(json.dumps(marks, indent=1), encoding='utf-8')
    os.replace(temporary, STAMP)


@contextlib.contextmanager
def only_one_setup():
    """Raise SetupError where another setup of this checkout runs."""
    VENV.mkdir(exist_ok=True)
    with open(VENV / LOCK, 'w', encoding='utf-8') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SetupError('another setup of this checkout is running: wait for it') from None
        yield


def make_venv() -> None:
    """Make `.venv`, anew where it belongs to another Python version or to none that is left."""
    version = '.'.join(map(str, sys.version_info[:2]))
    if (VENV / 'pyvenv.cfg').exists():
        ask = 'import sys; print("%d.%d" % sys.version_info[:2])'
        found = output_of(ask) if PYTHON.exists() else ''
        if found == version:
            return
        say(f'.venv was made by Python {found or "that is gone"}: making it anew')
        for path in VENV.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != LOCK:
                path.unlink()
    # In a virtual environment this is the Python that it was made from.
    base = getattr(sys, '_base_executable', sys.executable)
    say(f'making .venv with Python {version} ({base}); about 3 GB will be downloaded')
    run([base, '-m', 'venv', VENV], 'python -m venv failed')


def install_all(archs: tuple[str, ...]) -> None:
    """Install everything into `.venv`; what is there already costs seconds."""
    say('installing the pinned versions')
    pip = [PYTHON, '-m', 'pip', 'install', '--quiet', '-c', CONSTRAINTS, 'pip', 'uv']
    run(pip, 'pip could not install uv')
    install(*FOUNDATION)
    install_mmcv(archs)
    install('-e', EXTRAS)
    replace_opencv_without_libraries()


def install(*wanted: str) -> None:
    """Install the constrained versions with uv, or with pip where uv cannot.

    uv takes seconds where pip takes minutes, but it does not read pip.conf, so it misses a mirror
    that is named only there.
    """
    options = ['-c', str(CONSTRAINTS), '--no-build-isolation', *wanted]
    uv = [str(VENV / 'bin' / 'uv'), 'pip', 'install', '--python', str(PYTHON), *options]
    if subprocess.run(uv, cwd=ROOT, check=False).returncode == 0:
        return
    say('uv could not install these (it does not read pip.conf): trying pip, which takes longer')
    run([PYTHON, '-m', 'pip', 'install', *options], f'pip could not install {" ".join(wanted)}')


def install_mmcv(archs: tuple[str, ...]) -> None:
    """Install the mmcv that fits torch and the GPUs, building it where none is kept."""
    version = pinned('mmcv')
    ask = 'import json, torch; print(json.dumps([torch.__version__, torch.version.cuda]))'
    torch_version, torch_cuda = json.loads(output_of(ask))
    key = setup_mmcv.cache_key(version, torch_version, setup_cuda.label(archs, torch_cuda))
    wheel = setup_mmcv.cached_wheel(key)
    if wheel:
        say(f'mmcv {version} was compiled before: {wheel}')
    else:
        home = setup_cuda.find_toolkit(archs, torch_cuda, PYTHON, install) if archs else None
        setup_mmcv.announce(version, archs)
        environment = setup_cuda.build_environment(archs, home)
        wheel = setup_mmcv.build_wheel(PYTHON, version, key, environment, VENV / f'build-{key}')
    install('--no-deps', '--force-reinstall', str(wheel))


def replace_opencv_without_libraries() -> None:
    """Put the headless OpenCV in the place of one which misses the system's window libraries."""
    done = subprocess.run([PYTHON, '-c', 'import cv2'], capture_output=True, text=True, check=False)
    missing = re.search(r'ImportError: (lib\S+?): cannot open shared object', done.stderr)
    if not missing:
        return
    full, headless = 'opencv-python', 'opencv-python-headless'
    say(f'{missing.group(1)} is not on this system: {headless} takes the place of {full}')
    # Both write into the folder cv2, so the one must be gone before the other comes.
    uninstall = [PYTHON, '-m', 'pip', 'uninstall', '--quiet', '--yes', full, headless]
    run(uninstall, 'pip could not remove OpenCV')
    install('--no-deps', f'{headless}=={pinned(full)}')


def pinned(name: str) -> str:
    """Read the version of a package in the constraints."""
    lines = CONSTRAINTS.read_text(encoding='utf-8').splitlines()
    return next(line.split('==')[1] for line in lines if line.startswith(f'{name}=='))


def output_of(code: str) -> str:
    """Get what this code prints in `.venv`; raises SetupError where it fails."""
    done = subprocess.run([PYTHON, '-c', code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(
            f'{PYTHON} cannot run {code!r}: {done.stderr.strip().splitlines()[-1:]}. '
            'Start anew: rm -r .venv && make setup'
        )
    return done.stdout.strip()


def run(command: list, complaint: str) -> None:
    """Run a command with its output shown; raises SetupError with the complaint where it fails."""
    code = subprocess.run([str(part) for part in command], cwd=ROOT, check=False).returncode
    if code:
        raise SetupError(f'{complaint} (exit status {code}): the lines above say why')


if __name__ == '__main__':
    try:
        main()
    except SetupError as error:
        for line in str(error).splitlines():
            print(f'setup: {line}', file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print('\nsetup: stopped; make setup goes on from what is there', file=sys.stderr)
        sys.exit(130)
