"""The list of other libraries' private names is complete, and the installed ones have them."""

import ast
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
import torchvision  # noqa: F401 (registers its operators)

import ptnt_mm
from config.private_names import PRIVATE

PACKAGE = Path(ptnt_mm.__file__).parent

PYTHONS = {'_exit', '_run_exitfuncs', '_getframe', '_asdict', '_replace'}
PYTHONS |= {'_actions', '_subparsers', '_option_string_actions'}  # argparse's
"""Private names of the standard library."""


NAMES = [(owner, name) for owner, names in PRIVATE.items() for name in names]


@pytest.mark.parametrize(('owner', 'name'), NAMES)
def test_a_private_name_exists(owner: str, name: str):
    pytest.importorskip(re.split('[.:]', owner)[0])
    found = pkgutil.resolve_name(owner)
    # Attributes of instances, local variables and keys are only in the code.
    assert hasattr(found, name) or re.search(rf'\b{name}\b', inspect.getsource(found))


def private_names() -> tuple[set[str], set[str]]:
    """Private names that are defined in the package, and private attributes that it uses."""
    defined, used = set(), set()
    for file in PACKAGE.rglob('*.py'):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    defined.add(name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    defined.add(name)
                case ast.Attribute(value=ast.Name('self' | 'cls'), attr=name, ctx=ast.Store()):
                    defined.add(name)
                case ast.Attribute(attr=name):
                    used.add(name)
                case ast.ImportFrom(module=str(module)) if not module.startswith('ptnt_mm'):
                    used.update(alias.name for alias in node.names)
    return defined, {name for name in used if re.match('_[^_]', name)}


def test_all_private_names_that_are_used_are_listed():
    defined, used = private_names()
    assert used - defined - PYTHONS <= {name for _, name in NAMES}


def test_all_private_names_that_are_listed_are_used():
    code = '\n'.join(file.read_text() for file in PACKAGE.rglob('*.py'))
    unused = [name for _, name in NAMES if not re.search(rf'\b{name}\b', code)]
    assert unused == []
