"""Find the provider of ``mmcv._ext``, install ours, and show whether it works.

A compiled one takes precedence.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

from ptnt_mm.mmcv_ops.finder import EXTENSION, Finder
from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.versions import FORKS, VERSIONS, is_within, provider

COMPILED, INSTALLED, OFFERED, FOREIGN, NONE = (
    'compiled',
    'ptnt_mm, installed',
    'ptnt_mm, offered',
    'foreign',
    'none',
)
"""Providers of mmcv's operators: `Source.kind`."""


@dataclass(frozen=True)
class Source:
    """The provider of mmcv's operators (one of the kinds above), and its file."""

    kind: str
    file: Path | None = None


def source() -> Source:
    """Find where ``mmcv._ext`` comes from in this process, without importing mmcv."""
    folder = _mmcv_folder()
    if folder is None:
        return Source(NONE)
    for suffix in EXTENSION_SUFFIXES:
        if (compiled := folder / f'_ext{suffix}').exists():
            return Source(COMPILED, compiled)
    written = folder / '_ext.py'
    if written.exists():
        return Source(INSTALLED if is_ours(written) else FOREIGN, written)
    return Source(OFFERED, EXTENSION) if Finder in sys.meta_path else Source(NONE)


def install() -> str:
    """Write ``_ext.py`` into the folder of mmcv-lite, for programs that do not import ptnt_mm.

    Returns:
        A message for the user.

    Raises:
        UserError: if mmcv-lite or torchvision is missing, mmcv is too new, the folder cannot be
            written, or contains a foreign ``_ext.py``.
    """
    now = source()
    if now.kind == COMPILED:
        return f'Nothing to do: mmcv has compiled operators, and they take precedence ({now.file})'
    _check_own(now)
    file = _mmcv_folder_or_error() / '_ext.py'
    write_atomically(file, EXTENSION.read_bytes())
    return f"mmcv's operators now come from ptnt_mm, for every program of this Python ({file})"


def remove() -> str:
    """Delete the ``_ext.py`` that `install` wrote.

    Returns:
        A message for the user.

    Raises:
        UserError: if the file is foreign, or cannot be deleted.
    """
    folder = _mmcv_folder()
    file = folder / '_ext.py' if folder else None
    if file is None or not file.exists():
        return 'Nothing to do: no _ext.py was installed into mmcv'
    _check_own(Source(INSTALLED if is_ours(file) else FOREIGN, file))
    try:
        file.unlink()
    except OSError as error:
        raise UserError(f'{file} cannot be deleted: {error.strerror}') from error
    return f'Removed {file}'


def _mmcv_folder() -> Path | None:
    found = find_spec('mmcv')
    return Path(found.origin).parent if found and found.origin else None


def _mmcv_folder_or_error() -> Path:
    folder = _mmcv_folder()
    wanted = provider('mmcv-lite')
    install_mmcv = f"python -m pip install '{wanted}{VERSIONS[wanted][0]}'"
    if folder is None:
        raise UserError(f'mmcv is not installed: {install_mmcv}')
    if find_spec('torchvision') is None:
        raise UserError('torchvision is not installed: our operators for mmcv are built from it')
    # Not from the metadata, which may belong to another mmcv in the same folder.
    version = run_path(str(folder / 'version.py'))['__version__']
    bounds = [VERSIONS[name][0] for name in ('mmcv-lite', FORKS['mmcv-lite'])]
    if not any(is_within(version, each) for each in bounds):
        expected = f'{bounds[0]}, which mmdet and mmseg need, or {bounds[1]}, as their forks do'
        raise UserError(f'mmcv {version} is not {expected}: {install_mmcv}')
    return folder


def is_ours(file: Path) -> bool:
    """Whether a file is our extension, from any version of ptnt_mm, by its first line."""
    with file.open(encoding='utf-8', errors='replace') as stream:
        return stream.readline() == EXTENSION.read_text(encoding='utf-8').splitlines(True)[0]


def _check_own(now: Source) -> None:
    if now.kind == FOREIGN:
        raise UserError(f'{now.file} was not written by ptnt_mm: move it away first')


_IMPORT = 'import mmcv.ops, mmcv._ext; print(mmcv._ext.__file__)'

_PROGRAMS = {
    'import mmcv.ops in any program': _IMPORT,
    'import mmcv.ops after ptnt_mm': f'import ptnt_mm, {_IMPORT.removeprefix("import ")}',
}


def status() -> str:
    """Report what ``import mmcv.ops`` finds, in a program that imports ptnt_mm and in any other.

    This takes seconds, because only an import shows whether a compiled module fits the installed
    torch.
    """
    now = source()
    if now.kind == NONE:
        return "Nothing provides mmcv's operators: install mmcv-lite, then ptnt_mm provides them"
    running = {title: _start(code) for title, code in _PROGRAMS.items()}
    found = {title: _outcome(process) for title, process in running.items()}
    width = max(map(len, found))
    lines = [f'{title:{width}}  {outcome}' for title, outcome in found.items()]
    if now.kind == OFFERED:
        lines.append(f'To make both work: {sys.executable} -m ptnt_mm mmcv-ops install')
    if now.kind in (INSTALLED, OFFERED):
        from ptnt_mm.mmcv_ops.operators import MADE_OF

        lines += ['', 'The operators of ptnt_mm, and their building blocks:']
        width = max(map(len, MADE_OF))
        lines += [f'  {name:{width}}  {parts}' for name, parts in MADE_OF.items()]
        lines.append('  Any other raises an error when it is called.')
    return '\n'.join(lines)


def _start(code: str) -> subprocess.Popen:
    """Run code without the current directory on the import path, as a script elsewhere would."""
    environment = dict(os.environ)
    if 'ptnt_mm' in code:  # a program that imports ptnt_mm can find it
        paths = (str(Path(__file__).parents[2]), environment.get('PYTHONPATH', ''))
        environment['PYTHONPATH'] = os.pathsep.join(filter(None, paths))
    return subprocess.Popen(
        [sys.executable, '-P', '-W', 'ignore', '-c', code],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _outcome(process: subprocess.Popen) -> str:
    """``works, ...`` with the module's origin, or ``fails: ...`` with the error's last line."""
    output, errors = process.communicate()
    if process.returncode:
        last = errors.strip().splitlines()[-1:] or [f'exit status {process.returncode}']
        return f'fails: {last[0]}'
    file = Path(output.splitlines()[-1])
    if file.name.endswith(tuple(EXTENSION_SUFFIXES)):
        return f'works, compiled ({file})'
    return f'works, {"ptnt_mm" if is_ours(file) else "foreign"} ({file})'
