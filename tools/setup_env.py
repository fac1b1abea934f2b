"""Make `.venv` with the tested versions, for `make setup`. Only the standard library.

The stamp is written last. So an interrupted run is never taken for a whole one, and the next run
goes on from what is there.
"""

import sys

# Nothing newer than Python 3.6 above this line: an old Python must get as far as to say so.
if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    sys.exit(
        'setup: ptnt_mm needs Python 3.11, 3.12 or 3.13, and {} is {}.{}. Install one and name it: '
        'make setup PYTHON=/path/to/python3.13'.format(sys.executable, *sys.version_info[:2])
    )

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / '.venv'
VERSION = '{}.{}'.format(*sys.version_info[:2])
PYTHON = VENV / 'bin' / 'python'
STAMP = VENV / '.ptnt_mm-stamp.json'
CONSTRAINTS = ROOT / 'requirements' / 'constraints.txt'

# A change of any of these can change what is installed.
STAMPED = (
    'requirements/constraints.txt',
    'setup.py',
    'pyproject.toml',
    'ptnt_mm/version.py',
    'tools/setup_env.py',
)

# A whole .venv takes 6 GB, nearly all of it torch and its CUDA libraries. The download cache holds
# the same files: as hard links where both are on one file system, as copies elsewhere.
NEEDED_GB = 7


class SetupError(Exception):
    """A problem that the user can solve; the message says how."""


def main() -> None:
    """Bring `.venv` up to date, in well under a second where it is already."""
    start = time.monotonic()
    # Another environment's packages must not pass for ours.
    for name in ('PYTHONPATH', 'PYTHONHOME'):
        os.environ.pop(name, None)
    marks = fingerprint()
    changed = changes_since_the_stamp(marks)
    if not changed:
        say('.venv is up to date')
        return
    if STAMP.exists():
        say(f'changed since the last setup: {", ".join(changed)}')
    with only_one_setup():
        check_space()
        STAMP.unlink(missing_ok=True)
        make_venv()
        say('installing the pinned versions: about 3 GB, most of it CUDA libraries')
        install_all()
        run_command([PYTHON, '-m', 'ptnt_mm', 'mmcv-ops', 'install'], 'mmcv has no operators')
        say('what python -m ptnt_mm.doctor finds:')
        run_command([PYTHON, '-m', 'ptnt_mm.doctor'], 'something is broken')
        # Written last: it marks the environment as whole.
        temporary = STAMP.with_suffix('.tmp')
        temporary.write_text(json.dumps(marks, indent=1), encoding='utf-8')
        os.replace(temporary, STAMP)
    say(f'done after {time.monotonic() - start:.0f} s')


def say(text: str) -> None:
    """Print one line of progress."""
    print(f'setup: {text}', flush=True)


def fingerprint() -> dict[str, str]:
    """Tell what the environment depends on, by name."""
    marks = {name: hashlib.sha256((ROOT / name).read_bytes()).hexdigest() for name in STAMPED}
    marks['the Python version'] = VERSION
    # A copied .venv still points to the folder which it was made in.
    marks['the folder'] = str(ROOT)
    return marks


def changes_since_the_stamp(marks: dict[str, str]) -> list[str]:
    """Name the marks that differ from the stamp; all of them where no usable stamp is."""
    try:
        stamped = json.loads(STAMP.read_text(encoding='utf-8')) if PYTHON.exists() else {}
        return sorted(name for name in marks if stamped.get(name) != marks[name])
    except (OSError, ValueError, AttributeError):
        return sorted(marks)


@contextlib.contextmanager
def only_one_setup() -> Iterator[None]:
    """Raise SetupError where another setup of this checkout runs."""
    with open(ROOT / '.setup.lock', 'w', encoding='utf-8') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SetupError('another setup of this checkout is running: wait for it') from None
        yield


def check_space() -> None:
    """Raise SetupError where the checkout or the download cache has no room for torch."""
    if any(VENV.glob('lib/python*/site-packages/torch/version.py')):
        return
    cache = os.environ.get('UV_CACHE_DIR') or os.environ.get('XDG_CACHE_HOME') or Path.home()
    for folder in (ROOT, Path(cache)):
        existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        free = shutil.disk_usage(existing).free / 1e9
        if free < NEEDED_GB:
            raise SetupError(
                f'{free:.1f} GB are free at {existing}, and {NEEDED_GB} GB are needed: free some, '
                'or use another disk (for the download cache: set UV_CACHE_DIR)'
            )


def make_venv() -> None:
    """Make `.venv`; anew where it belongs to another Python or to one that is gone."""
    if PYTHON.exists():
        ask = [PYTHON, '-c', 'import pip, sys; print("%d.%d" % sys.version_info[:2])']
        found = subprocess.run(ask, capture_output=True, text=True, check=False).stdout
        if found.strip() == VERSION:
            return
    # In a virtual environment this is the Python that it was made from.
    base = getattr(sys, '_base_executable', sys.executable)
    say(f'making .venv with Python {VERSION} ({base})')
    run_command([base, '-m', 'venv', '--clear', VENV], 'python -m venv failed')


def install_all() -> None:
    """Install everything into `.venv`; what is there already costs seconds."""
    pip = [PYTHON, '-m', 'pip', 'install', '--quiet', '-c', CONSTRAINTS, 'pip', 'uv']
    run_command(pip, 'pip could not install uv: is there a network? PIP_INDEX_URL names a mirror')
    # The build of the checkout itself takes this setuptools, and needs no network then.
    install('setuptools')
    install('--no-build-isolation', '-e', '.[det,seg,cls,vis,dev]')
    replace_opencv_without_libraries()


def install(*wanted: str) -> None:
    """Install the constrained versions with uv, or with pip where uv cannot.

    uv takes seconds where pip takes minutes, but it does not read pip.conf, so it misses a mirror
    that is named only there.
    """
    options = ['-c', CONSTRAINTS, *wanted]
    # Compiled by uv once, torch need not be compiled by each of the doctor's ten processes.
    uv = [VENV / 'bin' / 'uv', 'pip', 'install', '--python', PYTHON, '--compile-bytecode']
    if subprocess.run([*uv, *options], cwd=ROOT, check=False).returncode == 0:
        return
    say('uv could not install these (it does not read pip.conf): trying pip, which takes longer')
    pip = [PYTHON, '-m', 'pip', 'install', *options]
    run_command(pip, f'pip could not install {" ".join(wanted)}')


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
    run_command(uninstall, 'pip could not remove OpenCV')
    version = re.search(rf'^{full}==(\S+)', CONSTRAINTS.read_text(encoding='utf-8'), re.MULTILINE)
    install('--no-deps', f'{headless}=={version.group(1)}')


def run_command(command: list, complaint: str) -> None:
    """Run a command with its output shown; raises SetupError with the complaint where it fails."""
    code = subprocess.run([str(part) for part in command], cwd=ROOT, check=False).returncode
    if code:
        raise SetupError(f'{complaint} (exit status {code}; the lines above say more)')


if __name__ == '__main__':
    try:
        main()
    except (SetupError, OSError) as error:
        sys.exit(f'setup: {error}')
    except KeyboardInterrupt:
        print('\nsetup: stopped; make setup goes on from what is there', file=sys.stderr)
        sys.exit(130)
