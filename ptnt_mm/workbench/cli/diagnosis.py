"""Find out what is installed, what is expected, and the command that fixes each problem."""

import sys
from dataclasses import dataclass
from importlib.util import find_spec

from ptnt_mm.mmcv_ops import finder, installation
from ptnt_mm.utils import multimodal
from ptnt_mm.utils.versions import (
    FORKS,
    HOST_PACKAGES,
    ON_FORKS,
    VERSIONS,
    installed,
    is_within,
    provider,
    shadowed,
)
from ptnt_mm.version import __version__
from ptnt_mm.workbench.cli.probes import PROBES, find_errors

OK, OPTIONAL, BROKEN = 'ok', 'optional', 'BROKEN'

# While one of these is broken, so is what the table lists below it.
FOUNDATIONS = ('torch', 'OpenCV', 'mmengine', 'mmcv', 'mmcv operators')

PYTHON_FIX = 'make clean setup PYTHON=python3.13'
CUDA_FIX = (
    'update the NVIDIA driver or install a different torch build, or set CUDA_VISIBLE_DEVICES=-1'
)


@dataclass
class Row:
    """One line of the table; a problem and the command that fixes it are shown below it."""

    what: str
    found: str | None
    expected: str
    problem: str | None
    fix: str
    needed: bool = True

    @property
    def verdict(self) -> str:
        """A problem is serious where the package is needed."""
        return OK if not self.problem else BROKEN if self.needed else OPTIONAL


def examine() -> tuple[list[Row], str]:
    """Inspect everything; return the rows of the table, and the environment as text."""
    needs_setuptools = provider('mmengine') == 'mmengine'  # its fork does not
    possible = [name for name in HOST_PACKAGES if not needs_setuptools or name not in ON_FORKS]
    hosts = [name for name in possible if installed(name)]
    unused = set(HOST_PACKAGES).difference(hosts)
    if not hosts:
        unused |= {'setuptools', 'mmcv operators'}
    if not needs_setuptools:
        unused.add('setuptools')
    errors, environment = find_errors([name for name in PROBES if name not in unused])
    opencv = 'opencv-python' if installed('opencv-python') else 'opencv-python-headless'
    opencv_fix = f'{pip("uninstall")} {opencv} ; {pip("install")} --no-deps opencv-python-headless'
    cuda = 'not used' if 'torch can use: 0' in environment else 'usable'
    if 'CUDA' in errors:
        cuda = 'not usable'
    python = '.'.join(map(str, sys.version_info[:3]))
    rows = [
        Row('Python', python, VERSIONS['Python'][0], wrong_version('Python', python), PYTHON_FIX),
        package_row('torch', errors),
        Row('CUDA', cuda, 'optional', errors.get('CUDA'), CUDA_FIX),
        *([package_row('setuptools', errors, bool(hosts))] if needs_setuptools else []),
        Row('OpenCV', installed(opencv), 'any', errors.get('OpenCV'), opencv_fix),
        package_row('mmengine', errors),
        mmcv_row(needed=bool(hosts)),
        operators_row(errors.get('mmcv operators')),
        *(package_row(name, errors, needed=name in hosts) for name in possible),
        *([transformers_row()] if hosts and installed('transformers') else []),
        Row('ptnt_mm', __version__, 'registered', errors.get('ptnt_mm'), 'install it again'),
    ]
    broken = [row for row in rows if row.verdict == BROKEN]
    first = next((row for row in broken if row.what in FOUNDATIONS), None)
    for row in broken[broken.index(first) + 1 :] if first else []:
        row.fix = f'fix {first.what} first'
    return rows, environment


def wrong_version(name: str, version: str | None) -> str:
    """The problem with a version; empty if there is none."""
    bounds, _ = VERSIONS[provider(name)]
    if version is None:
        return 'not installed'
    return '' if is_within(version, bounds) else f'{version} is not {bounds}'


def package_row(name: str, errors: dict[str, str], needed: bool = True) -> Row:
    """Judge a package by its version, and by whether it can be imported."""
    pip_name, version = provider(name), installed(name)
    bounds, _ = VERSIONS[pip_name]
    problem = wrong_version(name, version) or errors.get(name)
    fix = f"{pip('install')} '{pip_name}{bounds}'{HOST_PACKAGES.get(name, '')}"
    if shadowed(name):
        problem = f'{name} and {pip_name} share one folder'
        fix = f'{pip("uninstall")} {name} {pip_name} ; {fix}'
    found = version if version is None or pip_name == name else f'{version} ({pip_name})'
    return Row(name, found, bounds, problem, fix, needed)


def mmcv_row(needed: bool) -> Row:
    """Judge the version of mmcv, mmcv-lite and onedl-mmcv, which share a folder."""
    lite = provider('mmcv-lite')
    versions = {name: installed(name) for name in ('mmcv', lite) if installed(name)}
    found = ' and '.join(f'{version} ({name})' for name, version in versions.items())
    problem = wrong_version('mmcv-lite', next(iter(versions.values()), None))
    if len(set(versions.values())) > 1 or shadowed('mmcv-lite'):
        problem = 'two versions share one folder'
    return Row('mmcv', found, VERSIONS[lite][0], problem, mmcv_command(), needed)


def operators_row(error: str | None) -> Row:
    """Judge mmcv's operators, and whether programs without ptnt_mm find them."""
    finder.add_finder()  # as `import ptnt_mm` does
    kind = installation.source().kind
    if kind == installation.OFFERED and not error:
        problem = "mmdet's and mmseg's own commands do not find them yet"
        fix = f'{sys.executable} -m ptnt_mm mmcv-ops install'
        return Row('mmcv operators', kind, 'any', problem, fix, needed=False)
    return Row('mmcv operators', kind, 'any', error, mmcv_command())


def transformers_row() -> Row:
    """Judge transformers, which hosts import if it is there, and which nothing here needs."""
    version, bounds = installed('transformers'), multimodal.TRANSFORMERS
    problem = f"mmpretrain's multimodal models and GLIP of mmdet need {bounds}; nothing else does"
    fix = f"{pip('install')} 'transformers{bounds}' (its huggingface-hub cannot read hf: addresses)"
    fits = is_within(version, bounds)
    return Row('transformers', version, bounds, '' if fits else problem, fix, needed=False)


def mmcv_command() -> str:
    """Make the command that replaces any mmcv by one without operators, and adds ours."""
    lite = provider('mmcv-lite')
    torch = f" 'torch=={installed('torch').split('+')[0]}'" if installed('torch') else ''
    return (
        f'{pip("uninstall")} mmcv mmcv-lite {FORKS["mmcv-lite"]} ; '
        f"{pip('install')} '{lite}=={VERSIONS[lite][1]}' torchvision{torch} && "
        f'{sys.executable} -m ptnt_mm mmcv-ops install'
    )


def pip(action: str) -> str:
    """The beginning of a pip command; environments made by uv have no pip."""
    if find_spec('pip'):
        return f'{sys.executable} -m pip {action}'
    return f'uv pip {action} --python {sys.executable}'
