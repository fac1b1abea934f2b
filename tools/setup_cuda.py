"""Find the GPUs to compile mmcv for, and the CUDA toolkit. Only the standard library."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from setup_checks import SetupError, say

# The compiler, its headers and its libraries; torch brings the other CUDA headers itself.
TOOLKIT = 'cuda-toolkit[nvcc,crt,nvvm,cccl]'
CPU_ADVICE = 'or leave the GPU unused: export PTNT_CUDA=0; make setup'


def wanted_archs(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Tell the compute capabilities to compile for, as ('8.6', '9.0'); empty is the CPU alone."""
    setting = environ.get('PTNT_CUDA', '')
    if setting not in ('', '0', '1'):
        raise SetupError(
            f'PTNT_CUDA is {setting!r}: 0 leaves GPUs unused, 1 wants them, unset looks for them'
        )
    if setting == '0':
        return ()
    named = environ.get('TORCH_CUDA_ARCH_LIST', '') if setting == '1' else ''
    archs = tuple(sorted(set(re.findall(r'[^;\s]+', named)))) or gpu_capabilities()
    if setting == '1' and not archs:
        raise SetupError(
            'PTNT_CUDA is 1, and nvidia-smi finds no GPU: name those to compile for, as in '
            'PTNT_CUDA=1 TORCH_CUDA_ARCH_LIST="8.6;9.0" make setup'
        )
    return archs


def gpu_capabilities() -> tuple[str, ...]:
    """Ask the driver for the compute capabilities of the GPUs; empty without GPU or driver."""
    command = ['nvidia-smi', '--query-gpu=compute_cap', '--format=csv,noheader']
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(sorted(set(re.findall(r'^\d+\.\d+$', done.stdout, re.MULTILINE))))


def label(archs: tuple[str, ...], torch_cuda: str | None) -> str:
    """Name what the operators are compiled for, as in a file name: 'cpu' or 'cuda13.0-8.6-9.0'."""
    return '-'.join((f'cuda{torch_cuda}', *archs)) if archs else 'cpu'


def build_environment(archs: tuple[str, ...], home: Path | None) -> dict[str, str]:
    """Make the variables with which mmcv's setup.py compiles for these GPUs, or for the CPU."""
    if not archs:
        # mmcv compiles for CUDA wherever torch sees a GPU, so none may be seen.
        return {'FORCE_CUDA': '0', 'CUDA_VISIBLE_DEVICES': ''}
    return {'FORCE_CUDA': '1', 'TORCH_CUDA_ARCH_LIST': ';'.join(archs), 'CUDA_HOME': str(home)}


def find_toolkit(
    archs: tuple[str, ...], torch_cuda: str | None, python: Path, install: Callable[[str], None]
) -> Path:
    """Find CUDA_HOME for this torch: the system's, else that of packages, which it installs.

    Args:
        archs: compute capabilities that its compiler must know.
        torch_cuda: `torch.version.cuda`, such as '13.0'.
        python: the interpreter of `.venv`, where the toolkit's packages land.
        install: installs a requirement there.
    """
    if torch_cuda is None:
        raise SetupError(
            f'there is a GPU, and this torch has no CUDA: install one with it, {CPU_ADVICE}'
        )
    home = system_toolkit(torch_cuda)
    if home is None:
        say(f'no CUDA {torch_cuda.split(".")[0]} toolkit on this system: installing its packages')
        install(TOOLKIT)
        site_packages = next(python.parents[1].glob('lib/python*/site-packages'))
        home = complete_packaged_toolkit(site_packages, torch_cuda)
    check_archs(archs, home, torch_cuda)
    say(f'compiling with {home}/bin/nvcc')
    return home


def system_toolkit(torch_cuda: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Find the system's CUDA toolkit of torch's major version, best of its exact version."""
    nvcc = shutil.which('nvcc')
    places = [environ.get('CUDA_HOME'), nvcc and Path(nvcc).resolve().parents[1], '/usr/local/cuda']
    places += sorted(Path('/usr/local').glob('cuda-*'), reverse=True)
    versions = {Path(place): toolkit_version(Path(place)) for place in places if place}
    # torch's builder only warns about another minor version, and refuses another major one.
    major = torch_cuda.split('.')[0]
    fitting = [home for home, version in versions.items() if version.split('.')[0] == major]
    return min(fitting, key=lambda home: versions[home] != torch_cuda, default=None)


def toolkit_version(home: Path) -> str:
    """Tell the version of the toolkit in a folder, such as '13.0'; empty if it is not whole."""
    if not (home / 'include' / 'cuda_runtime.h').is_file():
        return ''
    found = re.search(r'release (\d+\.\d+)', ask_nvcc(home, '--version'))
    return found.group(1) if found else ''


def ask_nvcc(home: Path, option: str) -> str:
    """Get nvcc's answer to an option; empty where there is no nvcc that runs."""
    command = [home / 'bin' / 'nvcc', option]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ''


def complete_packaged_toolkit(site_packages: Path, torch_cuda: str) -> Path:
    """Find CUDA_HOME in the packages, and add two names which linking needs and they lack."""
    home = site_packages / 'nvidia' / f'cu{torch_cuda.split(".")[0]}'
    if not toolkit_version(home):
        raise SetupError(
            f'the CUDA packages left no whole toolkit at {home}: install CUDA {torch_cuda} and set '
            f'CUDA_HOME, {CPU_ADVICE}'
        )
    runtime = next((home / 'lib').glob('libcudart.so.*')).name
    for link, target in ((home / 'lib64', 'lib'), (home / 'lib' / 'libcudart.so', runtime)):
        if not link.exists():
            link.symlink_to(target)
    return home


def check_archs(archs: tuple[str, ...], home: Path, torch_cuda: str) -> None:
    """Raise SetupError where the compiler does not know one of the GPUs."""
    known = ask_nvcc(home, '--list-gpu-arch').split()
    for arch in archs:
        if f'compute_{arch.removesuffix("+PTX").replace(".", "")}' not in known:
            raise SetupError(
                f'CUDA {torch_cuda} does not know GPUs of compute capability {arch}; it knows '
                f'{", ".join(known)}: take a torch for another CUDA, {CPU_ADVICE}'
            )
