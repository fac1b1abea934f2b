"""Check what `make setup` needs before it downloads anything. Only the standard library."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

# A whole .venv takes 5.3 GB, nearly all of it torch and its CUDA libraries. The download cache
# holds the same files, as hard links where both are on one file system.
FULL_GB = 8
# Where torch is installed already, the rest fits into this.
REST_GB = 2

CPP17_PROGRAM = '#include <optional>\nint main() { std::optional<int> zero{0}; return *zero; }\n'


class SetupError(Exception):
    """A problem that the user can solve; the message says how."""


def say(text: str) -> None:
    """Print one line of progress."""
    print(f'setup: {text}', flush=True)


def preflight(root: Path, cache: Path) -> None:
    """Raise SetupError with one line for each thing that would make setup fail later.

    Args:
        root: the checkout, where `.venv` will be.
        cache: the folder for wheels that we built.
    """
    checks: list[Callable[[], None]] = [
        check_venv_module,
        check_python_headers,
        check_compiler,
        lambda: check_writable(root),
        lambda: check_writable(cache),
        lambda: check_space(root, Path(os.environ.get('UV_CACHE_DIR') or cache)),
    ]
    problems = []
    for check in checks:
        try:
            check()
        except SetupError as problem:
            problems.append(str(problem))
    if problems:
        raise SetupError('\n'.join(problems))


def check_venv_module() -> None:
    """Look for ensurepip, which Debian splits off and `python -m venv` needs."""
    if importlib.util.find_spec('ensurepip') is None:
        raise SetupError(
            f'{sys.executable} has no ensurepip, and cannot make an environment: '
            f'apt-get install {python_name()}-venv (or take another: make setup PYTHON=...)'
        )


def check_python_headers() -> None:
    """Look for Python.h, which compiling mmcv needs."""
    header = Path(sysconfig.get_path('include'), 'Python.h')
    if not header.is_file():
        raise SetupError(
            f'there is no {header}, and mmcv is compiled with it: '
            f'apt-get install {python_name()}-dev (with dnf: {python_name()}-devel)'
        )


def check_compiler() -> None:
    """Compile a program as compiling mmcv will: with a C++ compiler that knows C++17."""
    name = os.environ.get('CXX') or 'c++'
    if shutil.which(name.split()[0]) is None:
        raise SetupError(
            f'no C++ compiler: there is no {name!r}, and mmcv is compiled from source: '
            'apt-get install g++ (or set CXX to your compiler)'
        )
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, 'check.cpp')
        source.write_text(CPP17_PROGRAM, encoding='utf-8')
        command = [*name.split(), '-std=c++17', str(source), '-o', str(source.with_suffix('.out'))]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = next(iter((done.stderr or done.stdout).strip().splitlines()), 'it gives no reason')
        raise SetupError(
            f'the C++ compiler {name!r} cannot compile a two-line C++17 program ({reason}): '
            'apt-get install g++ (or set CXX to a compiler that can)'
        )


def check_writable(folder: Path) -> None:
    """Look whether we may write to a folder, or make it."""
    existing = nearest(folder)
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        raise SetupError(
            f'cannot write to {existing}: make it yours, or work in one that is (for the '
            'cache: set XDG_CACHE_HOME)'
        )


def check_space(root: Path, cache: Path) -> None:
    """Look whether the file systems of both have room for what is still to be installed."""
    torch_is_there = any(root.glob('.venv/lib/python*/site-packages/torch/version.py'))
    need = REST_GB if torch_is_there else FULL_GB
    disks = {nearest(folder).stat().st_dev: nearest(folder) for folder in (cache, root)}
    for folder in disks.values():
        free = shutil.disk_usage(folder).free / 1e9
        if free < need:
            raise SetupError(
                f'{free:.1f} GB are free at {folder}, and {need} GB are needed: free some, or use '
                'another disk (for the cache: set XDG_CACHE_HOME)'
            )


def check_driver(cuda_major: int) -> None:
    """Look whether the GPU's driver knows the CUDA that torch is built for."""
    try:
        done = subprocess.run(
            ['nvidia-smi'], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    found = re.search(r'CUDA[\w ]* Version:\s*(\d+)\.(\d+)', done.stdout)
    if found and int(found.group(1)) < cuda_major:
        raise SetupError(
            f'the GPU driver knows CUDA {found.group(1)}.{found.group(2)}, and the tested torch is '
            f'built for CUDA {cuda_major}: update the driver, or leave the GPU unused: '
            'export PTNT_CUDA=0; make setup'
        )


def python_name() -> str:
    """Name this Python as packages do: 'python3.12'."""
    return f'python{sys.version_info[0]}.{sys.version_info[1]}'


def nearest(folder: Path) -> Path:
    """Find the folder itself or its nearest parent that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())
