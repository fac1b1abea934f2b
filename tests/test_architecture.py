"""Imports point one way: each package imports only those below it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from repository import ROOT

PACKAGE = ROOT / 'ptnt_mm'

# Lowest first. A package imports only from lower layers and from itself.
LAYERS = (
    ('utils', 'version', 'registry'),
    ('explain', 'weights.reader', 'mmcv_ops', 'data', 'demo', 'deploy'),
    ('labels',),
    ('doctor', 'drawing', 'models'),
    ('weights',),
    ('config',),
    ('check', 'complexity', 'side_effects'),
    ('engine',),
    ('inference', 'project'),
    ('report', 'export', 'visualize'),
    ('api',),
    ('cli',),
    ('__init__', '__main__', 'checkpoints', 'zoo'),
)
LAYER_OF = {package: number for number, layer in enumerate(LAYERS) for package in layer}

PARSING = r'\bargparse import|import argparse\b|sys\.(orig_)?argv'

EXCEPTIONS = {
    # Its probe imports everything, in a separate process.
    ('doctor', '__init__'),
}


def package_of(module: str) -> str:
    """ptnt_mm.check.data -> check; ptnt_mm itself counts as the package '__init__'."""
    return (module.split('.') + ['__init__'])[1]


def imports(file: Path) -> Iterator[str]:
    """Every module of ptnt_mm that a file imports or names in a string, at any depth."""
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module='ptnt_mm'):
                yield from (f'ptnt_mm.{alias.name}' for alias in node.names)
            case ast.ImportFrom(level=0):
                yield node.module
            case ast.ImportFrom(level=1):
                yield f'ptnt_mm.{file.relative_to(PACKAGE).parts[0]}'  # files of the same package
            case ast.Constant(str(text)) if re.fullmatch(r'ptnt_mm(\.\w+)+', text):
                yield text


def files() -> list[Path]:
    return sorted(PACKAGE.rglob('*.py'))


def test_every_package_has_a_layer():
    packages = {file.relative_to(PACKAGE).parts[0].removesuffix('.py') for file in files()}
    assert packages == set(LAYER_OF)


def test_imports_point_down():
    wrong = []
    for file in files():
        name = file.relative_to(PACKAGE)
        own = name.parts[0].removesuffix('.py')
        for module in imports(file):
            if module.split('.')[0] == 'ptnt_mm':
                other = package_of(module)
                down = other == own or LAYER_OF[other] < LAYER_OF[own]
                if not down and (own, other) not in EXCEPTIONS:
                    wrong.append(f'{name} imports {module}')
    assert not wrong


def test_only_commands_read_the_command_line():
    found = {str(f.relative_to(PACKAGE)) for f in files() if re.search(PARSING, f.read_text())}
    # A checkpoint may contain parsed arguments; a probe is a separate process of the doctor.
    others = {'checkpoints/objects.py', 'checkpoints/pickle_reader.py', 'doctor/probes.py'}
    assert {name for name in found if not name.startswith('cli/')} == others
