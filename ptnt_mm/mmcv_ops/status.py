"""Find the provider of mmcv's operators by importing them in fresh interpreters."""

import os
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from ptnt_mm.mmcv_ops import place

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
    now = place.source()
    if now.kind == place.NONE:
        return "Nothing provides mmcv's operators: install mmcv-lite, then ptnt_mm provides them"
    running = {title: _start(code) for title, code in _PROGRAMS.items()}
    found = {title: _outcome(process) for title, process in running.items()}
    width = max(map(len, found))
    lines = [f'{title:{width}}  {outcome}' for title, outcome in found.items()]
    if now.kind == place.OFFERED:
        lines.append(f'To make both work: {sys.executable} -m ptnt_mm mmcv-ops install')
    if now.kind in (place.INSTALLED, place.OFFERED):
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
    return f'works, {"ptnt_mm" if place.is_ours(file) else "foreign"} ({file})'
