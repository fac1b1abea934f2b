"""Show what is installed, what is expected, and the one command that mends each problem.

`python -m ptnt_mm.doctor` exits with status 1 if something is broken.
"""

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.util import find_spec

from ptnt_mm.checkpoints.unsafe_switch import UNSAFE_SWITCH, is_on
from ptnt_mm.doctor.probes import PROBES, Finding, ask
from ptnt_mm.mmcv_ops.place import OFFERED
from ptnt_mm.utils.errors import exit_status

# name: (versions that work, the version that the tests run on)
EXPECTED = {
    'Python': ('>=3.11,<3.14', '3.11, 3.13'),
    'torch': ('>=2.6', '2.15.0'),
    'mmengine': ('>=0.10.7,<0.11', '0.10.7'),
    # Also as mmcv-lite. mmdet 3.3 and mmsegmentation 1.2.2 refuse any other.
    'mmcv': ('>=2.0.0,<2.2', '2.1.0'),
    'mmdet': ('>=3.3,<3.4', '3.3.0'),
    'mmsegmentation': ('>=1.2.2,<1.3', '1.2.2'),
    # 82 dropped pkg_resources, which MMEngine imports for `mmdet::` and `mmseg::` bases.
    'setuptools': ('<81', '80.10.2'),
    'opencv-python': ('>=3', '5.0.0.93'),
}

# Libraries which we plug into, and what each imports without asking for it.
HOSTS = {'mmdet': '', 'mmsegmentation': ' ftfy regex'}
NEED_TORCH = ('CUDA', 'mmengine', 'mmcv operators', *HOSTS, 'ptnt_mm')

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
        """Make this row one with a problem."""
        return replace(self, verdict=BROKEN, problem=problem, fix=fix)

    def absent(self, fix: str, problem: str = 'optional') -> 'Row':
        """Make this row one for what nobody needs here; `fix` is how to get it all the same."""
        return replace(self, verdict=ABSENT, problem=problem, fix=fix)


def examine() -> list[Row]:
    """Look at everything, and make the rows of the table."""
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        findings = dict(zip(PROBES, pool.map(ask, PROBES), strict=True))
    return blame_torch(
        [
            python_row('.'.join(map(str, sys.version_info[:3]))),
            package_row('torch', findings['torch']),
            cuda_row(findings['cuda']),
            package_row('mmengine', findings['mmengine']),
            mmcv_row(),
            operators_row(findings['operators']),
            host_row('mmdet', findings['mmdet']),
            host_row('mmsegmentation', findings['mmsegmentation']),
            setuptools_row(findings['pkg_resources']),
            opencv_row(findings['opencv']),
            safe_loading_row(os.environ.get(UNSAFE_SWITCH, '')),
            ptnt_mm_row(findings['ptnt_mm']),
        ]
    )


def blame_torch(rows: list[Row]) -> list[Row]:
    """Send the reader to torch first where torch is broken: whatever needs it fails with it."""
    if not any(row.what == 'torch' and row.verdict == BROKEN for row in rows):
        return rows
    return [
        replace(row, fix='mend torch first')
        if row.what in NEED_TORCH and row.verdict == BROKEN
        else row
        for row in rows
    ]


def python_row(version: str) -> Row:
    """Judge the Python that runs this."""
    row = Row('Python', version, *EXPECTED['Python'])
    if fits(version, row.expected):
        return row
    return row.broken(f'it is not {row.expected}', 'make clean setup PYTHON=python3.13')


def package_row(name: str, finding: Finding) -> Row:
    """Judge a package that everything needs."""
    expected, tested = EXPECTED[name]
    row = Row(name, installed(name) or 'not installed', expected, tested)
    return version_checked(row, finding, f"{pip('install')} '{name}{expected}'")


def cuda_row(finding: Finding) -> Row:
    """Judge driver, GPUs and torch's CUDA together."""
    row = Row('CUDA', finding.text, 'optional', 'CPU only')
    if finding.works:
        return row
    row = replace(row, found='not usable')
    otherwise = 'or leave the GPU unused: export PTNT_CUDA=0'
    if 'no kernel image' in finding.text:
        return row.broken('torch was not built for this GPU', f'install one that was, {otherwise}')
    return row.broken(finding.text, f'update the NVIDIA driver, {otherwise}')


def mmcv_row() -> Row:
    """Judge mmcv's version, with or without its compiled operators; the hosts alone need it."""
    full, lite = installed('mmcv'), installed('mmcv-lite')
    found = [version for version in (full, lite and f'{lite} (mmcv-lite)') if version]
    row = Row('mmcv', ' and '.join(found) or 'not installed', *EXPECTED['mmcv'])
    if not found:
        if hosts_here():
            return row.broken(f'{hosts_here()} needs it', mmcv_command())
        return row.absent(mmcv_command())
    if full and lite and full != lite:
        return row.broken('two versions share one folder: the last one overwrote', mmcv_command())
    return version_checked(row, Finding(True, ''), mmcv_command())


def operators_row(finding: Finding) -> Row:
    """Judge whether mmcv's operators run, also on the GPU, and say whose they are."""
    row = Row('mmcv operators', finding.text, 'any', 'ptnt_mm, on the CPU')
    if finding.works and finding.text.startswith(OFFERED):
        why = "mmdet's and mmseg's own commands do not find them yet"
        return row.absent(f'{sys.executable} -m ptnt_mm mmcv-ops install', why)
    if finding.works:
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
    meaning = next((text for sign, text in meanings.items() if sign in finding.text), 'they fail')
    return row.broken(f'{meaning} ({finding.text})', mmcv_command())


def host_row(name: str, finding: Finding) -> Row:
    """Judge a host: it may be missing, but must work where it is installed."""
    expected, tested = EXPECTED[name]
    row = Row(name, installed(name) or 'not installed', expected, tested)
    fix = f"{pip('install')} '{name}{expected}'{HOSTS[name]}"
    if not installed(name):
        return row.absent(fix)
    return version_checked(row, finding, mmcv_command() if 'mmcv' in finding.text else fix)


def setuptools_row(finding: Finding) -> Row:
    """Judge whether MMEngine finds pkg_resources, which it needs for the hosts' configs alone."""
    expected, tested = EXPECTED['setuptools']
    row = Row('setuptools', installed('setuptools') or 'not installed', expected, tested)
    fix = f"{pip('install')} 'setuptools{expected}'"
    if finding.works:
        return row
    if hosts_here():
        return row.broken(f'mmdet:: and mmseg:: bases need pkg_resources ({finding.text})', fix)
    return row.absent(fix)


def opencv_row(finding: Finding) -> Row:
    """Judge whether OpenCV loads, with the libraries that it needs of the system."""
    name = 'opencv-python' if installed('opencv-python') else 'opencv-python-headless'
    version = installed(name)
    row = Row('OpenCV', f'{version or "none"} ({name})', *EXPECTED['opencv-python'])
    if finding.works:
        return row
    full, headless = 'opencv-python', 'opencv-python-headless'
    wanted = f'{headless}=={version}' if version else headless
    remove = f'{pip("uninstall")} {full} {headless}'
    fix = f'{remove} ; {pip("install")} --no-deps {wanted}'
    return row.broken(finding.text, fix)


def safe_loading_row(value: str) -> Row:
    """Judge the variable that switches torch's safe loading off."""
    row = Row('safe loading', f'off, {UNSAFE_SWITCH}={value}', 'on', 'on')
    if not is_on(value):
        return replace(row, found='on')
    return row.broken('torch.load runs the code that checkpoints carry', f'unset {UNSAFE_SWITCH}')


def ptnt_mm_row(finding: Finding) -> Row:
    """Judge whether MMEngine's configs find our classes."""
    row = Row('ptnt_mm', finding.text, 'registered', 'registered')
    if finding.works:
        return row
    return replace(row, found='not usable').broken(finding.text, 'mend what is broken above')


def version_checked(row: Row, finding: Finding, fix: str) -> Row:
    """Judge an installed version and whether the package works."""
    if not fits(row.found, row.expected):
        return row.broken(f'it is not {row.expected}', fix)
    if not finding.works:
        return row.broken(finding.text, fix)
    return row


def fits(version: str, expected: str) -> bool:
    """Tell whether a version is in a range such as '>=3.3,<3.4'; of '0.11rc0' only 0.11 counts."""
    number = _numbers(version)
    bounds = [(bound.startswith('>='), _numbers(bound)) for bound in expected.split(',')]
    return bool(number) and all((number >= limit) == at_least for at_least, limit in bounds)


def _numbers(text: str) -> tuple[int, ...]:
    found = re.search(r'\d+(\.\d+)*', text)
    return tuple(map(int, found.group().split('.'))) if found else ()


def installed(name: str) -> str | None:
    """Read the installed version of a distribution."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def hosts_here() -> str:
    """Name the installed hosts, for a sentence."""
    return ' and '.join(filter(installed, HOSTS))


def mmcv_command() -> str:
    """Make the command that puts mmcv-lite, with our operators, in the place of any other mmcv."""
    torch = f" 'torch=={installed('torch').split('+')[0]}'" if installed('torch') else ''
    return (
        f'{pip("uninstall")} mmcv mmcv-lite ; '
        f"{pip('install')} 'mmcv-lite=={EXPECTED['mmcv'][1]}' torchvision{torch} && "
        f'{sys.executable} -m ptnt_mm mmcv-ops install'
    )


def pip(action: str) -> str:
    """Start a command for this environment, which has no pip where uv made it."""
    if find_spec('pip'):
        return f'{sys.executable} -m pip {action}'
    return f'uv pip {action} --python {sys.executable}'


def table(rows: list[Row]) -> str:
    """Lay the rows out in aligned columns, then each problem with the command that mends it."""
    heads = ('', 'found', 'expected', 'tested with', 'verdict')
    cells = [heads] + [(row.what, row.found, row.expected, row.tested, row.verdict) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ['  '.join(map(str.ljust, line, widths)).rstrip() for line in cells]
    for row in rows:
        if row.verdict == BROKEN:
            lines += ['', f'{row.what}: {row.problem}', f'  to mend it: {row.fix}']
        elif row.verdict == ABSENT and row.fix:
            lines += ['', f'{row.what}: {row.problem}', f'  to get it: {row.fix}']
    return '\n'.join(lines)


def main() -> int:
    """Print the table; 1 if something is broken."""
    print('Importing torch, mmcv and the hosts: up to a minute ...', file=sys.stderr, flush=True)
    rows = examine()
    print(table(rows))
    return int(any(row.verdict == BROKEN for row in rows))


if __name__ == '__main__':
    sys.exit(exit_status(main))
