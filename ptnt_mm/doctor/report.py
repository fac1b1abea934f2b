"""Show what is installed, what is expected, and the one command that fixes each problem.

`python -m ptnt_mm.doctor` exits with status 1 if something is broken.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec

from ptnt_mm.checkpoints.unsafe_switch import UNSAFE_SWITCH, is_on
from ptnt_mm.doctor.probes import PROBES, Answer, ask_probes
from ptnt_mm.mmcv_ops.place import OFFERED
from ptnt_mm.utils.console import show
from ptnt_mm.utils.progress import waiting
from ptnt_mm.utils.tables import new_listing, to_text
from ptnt_mm.utils.versions import HOST_PACKAGES, VERSIONS, installed, is_within

NEED_TORCH = ('CUDA', 'mmengine', 'mmcv operators', *HOST_PACKAGES, 'ptnt_mm')

OK, ABSENT, BROKEN = 'ok', 'optional', 'BROKEN'


@dataclass(frozen=True)
class Row:
    """One line of the table; `problem` and `fix` are shown below it."""

    what: str
    found: str
    expected: str
    tested: str
    verdict: str = OK
    problem: str = ''
    fix: str = ''

    def broken(self, problem: str, fix: str) -> 'Row':
        """Return this row with a problem."""
        return replace(self, verdict=BROKEN, problem=problem, fix=fix)

    def absent(self, fix: str, problem: str = 'optional') -> 'Row':
        """Return this row for something that is not needed; `fix` is how to install it anyway."""
        return replace(self, verdict=ABSENT, problem=problem, fix=fix)

    def judged(self, version: str | None, fix: str, answer: Answer | None = None) -> 'Row':
        """Judge an installed version and, if it was tried, whether the package works."""
        if not is_within(version, self.expected):
            return self.broken(f'it is not {self.expected}', fix)
        return self if answer is None or answer.works else self.broken(answer.text, fix)


def examine() -> list[Row]:
    """Inspect everything, and return the rows of the table."""
    with waiting('Importing torch, mmcv and the hosts'):
        answers = dict(ask_probes(list(PROBES)))
    rows = [
        python_row('.'.join(map(str, sys.version_info[:3]))),
        package_row('torch', answers['torch']),
        cuda_row(answers['cuda']),
        package_row('mmengine', answers['mmengine']),
        mmcv_row(),
        operators_row(answers['operators']),
        *(package_row(host, answers[host]) for host in HOST_PACKAGES),
        setuptools_row(answers['pkg_resources']),
        opencv_row(answers['opencv']),
        safe_loading_row(os.environ.get(UNSAFE_SWITCH, '')),
        ptnt_mm_row(answers['ptnt_mm']),
    ]
    if rows[1].verdict == BROKEN:
        # Everything that needs torch fails with it.
        for i, row in enumerate(rows):
            if row.what in NEED_TORCH and row.verdict == BROKEN:
                rows[i] = replace(row, fix='fix torch first')
    return rows


def python_row(version: str) -> Row:
    """Judge the Python that runs this."""
    row = Row('Python', version, *VERSIONS['Python'])
    return row.judged(version, 'make clean setup PYTHON=python3.13')


def package_row(name: str, answer: Answer) -> Row:
    """Judge a package; a host may be missing, but must work if it is installed."""
    version, fix = installed(name), install_command(name) + HOST_PACKAGES.get(name, '')
    row = Row(name, version or 'not installed', *VERSIONS[name])
    if name in HOST_PACKAGES and not version:
        return row.absent(fix)
    if name in HOST_PACKAGES and 'mmcv' in answer.text:
        fix = mmcv_command()
    return row.judged(version, fix, answer)


def cuda_row(answer: Answer) -> Row:
    """Judge driver, GPUs and torch's CUDA together."""
    row = Row('CUDA', answer.text if answer.works else 'not usable', 'optional', 'CPU only')
    otherwise = 'or leave the GPU unused: export PTNT_CUDA=0'
    if answer.works:
        return row
    if 'no kernel image' in answer.text:
        return row.broken('torch was not built for this GPU', f'install one that was, {otherwise}')
    return row.broken(answer.text, f'update the NVIDIA driver, {otherwise}')


def mmcv_row() -> Row:
    """Judge mmcv's version, with or without compiled operators; only the hosts need it."""
    full, lite = installed('mmcv'), installed('mmcv-lite')
    found = [version for version in (full, lite and f'{lite} (mmcv-lite)') if version]
    row = Row('mmcv', ' and '.join(found) or 'not installed', *VERSIONS['mmcv-lite'])
    if not found and hosts_here():
        return row.broken(f'{hosts_here()} needs it', mmcv_command())
    if not found:
        return row.absent(mmcv_command())
    if full and lite and full != lite:
        return row.broken('two versions share one folder: the last one overwrote', mmcv_command())
    return row.judged(full or lite, mmcv_command())


def operators_row(answer: Answer) -> Row:
    """Judge whether mmcv's operators run, also on the GPU, and report their provider."""
    row = Row('mmcv operators', answer.text, 'any', 'ptnt_mm, on the CPU')
    if answer.works and answer.text.startswith(OFFERED):
        why = "mmdet's and mmseg's own commands do not find them yet"
        return row.absent(f'{sys.executable} -m ptnt_mm mmcv-ops install', why)
    if answer.works:
        return row
    if not (installed('mmcv') or installed('mmcv-lite')):
        return replace(row, found='not installed').absent('')
    row = replace(row, found='not usable')
    if not hosts_here():
        return row.absent(mmcv_command())
    meanings = {
        'no kernel image': 'they were compiled for other GPUs',
        'implementation for device': 'they were compiled for the CPU only',
        'undefined symbol': 'they were compiled against another torch',
        'cannot open shared object': 'they were compiled against another torch',
        'torchvision::': 'torchvision was compiled against another torch',
        "named 'torchvision'": 'ours need torchvision',
    }
    meaning = next((text for sign, text in meanings.items() if sign in answer.text), 'they fail')
    return row.broken(f'{meaning} ({answer.text})', mmcv_command())


def setuptools_row(answer: Answer) -> Row:
    """Judge whether MMEngine finds pkg_resources, which only the hosts' configs need."""
    row = Row('setuptools', installed('setuptools') or 'not installed', *VERSIONS['setuptools'])
    if answer.works:
        return row
    fix = install_command('setuptools')
    if hosts_here():
        return row.broken(f'mmdet:: and mmseg:: bases need pkg_resources ({answer.text})', fix)
    return row.absent(fix)


def opencv_row(answer: Answer) -> Row:
    """Judge whether OpenCV and the system libraries that it needs load."""
    full, headless = 'opencv-python', 'opencv-python-headless'
    name = full if installed(full) else headless
    version = installed(name)
    row = Row('OpenCV', f'{version or "none"} ({name})', *VERSIONS[full])
    if answer.works:
        return row
    wanted = f'{headless}=={version}' if version else headless
    remove = f'{pip("uninstall")} {full} {headless}'
    return row.broken(answer.text, f'{remove} ; {pip("install")} --no-deps {wanted}')


def safe_loading_row(value: str) -> Row:
    """Judge the variable that switches torch's safe loading off."""
    if not is_on(value):
        return Row('safe loading', 'on', 'on', 'on')
    row = Row('safe loading', f'off, {UNSAFE_SWITCH}={value}', 'on', 'on')
    return row.broken('torch.load runs code in checkpoints', f'unset {UNSAFE_SWITCH}')


def ptnt_mm_row(answer: Answer) -> Row:
    """Judge whether MMEngine's configs find our classes."""
    if answer.works:
        return Row('ptnt_mm', answer.text, 'registered', 'registered')
    row = Row('ptnt_mm', 'not usable', 'registered', 'registered')
    return row.broken(answer.text, 'fix what is broken above')


def hosts_here() -> str:
    """The names of the installed hosts."""
    return ' and '.join(filter(installed, HOST_PACKAGES))


def mmcv_command() -> str:
    """Make the command that replaces any mmcv by mmcv-lite with our operators."""
    torch = f" 'torch=={installed('torch').split('+')[0]}'" if installed('torch') else ''
    return (
        f'{pip("uninstall")} mmcv mmcv-lite ; '
        f"{pip('install')} 'mmcv-lite=={VERSIONS['mmcv-lite'][1]}' torchvision{torch} && "
        f'{sys.executable} -m ptnt_mm mmcv-ops install'
    )


def install_command(name: str) -> str:
    """Make the command that installs a version of a package that works."""
    return f"{pip('install')} '{name}{VERSIONS[name][0]}'"


def pip(action: str) -> str:
    """The beginning of a pip command; environments made by uv have no pip."""
    if find_spec('pip'):
        return f'{sys.executable} -m pip {action}'
    return f'uv pip {action} --python {sys.executable}'


def main(write: Callable[[list[dict]], None] = lambda rows: None) -> int:
    """Print a table, and the command that fixes each problem; ``write`` gets the rows.

    Returns 1 if something is broken.
    """
    rows = examine()
    table = new_listing('', 'found', 'expected', 'tested with', 'verdict')
    for row in rows:
        table.add_row(row.what, row.found, row.expected, row.tested, row.verdict)
    show(to_text(table))
    for row in rows:
        if row.fix:
            purpose = 'fix' if row.verdict == BROKEN else 'get'
            print(f'\n{row.what}: {row.problem}\n  to {purpose} it: {row.fix}')
    write([asdict(row) for row in rows])
    return int(any(row.verdict == BROKEN for row in rows))
