"""Data sets of every format, a module for each, with the name of the format."""

import pkgutil
from importlib import import_module

import pytest

_MODULES = {
    module.name.replace('_', '-'): import_module(f'{__name__}.{module.name}')
    for module in pkgutil.iter_modules(__path__)
}

SAMPLES = [sample for module in _MODULES.values() for sample in getattr(module, 'SAMPLES', ())]

TEXTS = [
    pytest.param(name, files, id=f'{name}-{kind}')
    for name, module in _MODULES.items()
    for kind, files in getattr(module, 'TEXTS', {}).items()
]
"""Label files of a.jpg, with a cat, and b.jpg, without objects: each way to write them."""

WRONG = [
    pytest.param(files, named, id=f'{name}-{kind}')
    for name, module in _MODULES.items()
    for kind, (files, named) in getattr(module, 'WRONG', {}).items()
]
"""The same with something wrong, and a part of what is said about it."""
