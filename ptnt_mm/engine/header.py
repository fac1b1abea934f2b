"""What a log has to hold so that its run can be done again."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ptnt_mm.mmcv_ops.place import source
from ptnt_mm.utils.atomic_files import sha256
from ptnt_mm.utils.versions import installed

_PACKAGES = (
    'ptnt_mm',
    'torch',
    'torchvision',
    'mmengine',
    'mmcv',
    'mmcv-lite',
    'mmdet',
    'mmsegmentation',
    'numpy',
)


def header(weights: str | None) -> Iterator[str]:
    """Command, versions, operators, revision and weights; MMEngine logs the rest itself.

    Args:
        weights: The file that training starts from, if any.
    """
    yield f'Command: {shlex.join([Path(sys.executable).name, *sys.argv])} in {Path.cwd()}'
    found = ((package, installed(package)) for package in _PACKAGES)
    yield 'Versions: ' + ', '.join(f'{package} {version}' for package, version in found if version)
    operators = source()
    yield f"mmcv's operators: {operators.kind}" + (f' ({operators.file})' if operators.file else '')
    yield f'Revision of {Path.cwd()}: {_revision(Path.cwd())}'
    file = None if weights is None else Path(weights).expanduser()
    if file is not None and file.is_file():
        yield f'Weights: {weights}, SHA-256 {sha256(file)}'


def _revision(folder: Path) -> str:
    """Git's commit, and whether files differ from it."""
    command = ['git', '-C', str(folder), 'describe', '--always', '--dirty', '--abbrev=40']
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return 'unknown (git did not answer)'
    return done.stdout.strip() or 'none (no git checkout)'
