"""Sample data sets of every format, a module for each."""

import pkgutil
from importlib import import_module

import pytest

_MODULES = [import_module(f'{__name__}.{module.name}') for module in pkgutil.iter_modules(__path__)]

SAMPLES = [sample for module in _MODULES for sample in module.SAMPLES]

TEXTS = [
    pytest.param(module, files, id=f'{module.__name__}-{name}')
    for module in _MODULES
    for name, files in getattr(module, 'TEXTS', {}).items()
]
"""Label files of a.jpg, with a cat, and b.jpg, without objects: each way to write them."""

WRONG = [
    pytest.param(files, named, id=f'{module.__name__}-{name}')
    for module in _MODULES
    for name, (files, named) in getattr(module, 'WRONG', {}).items()
]
"""The same with something wrong, and a part of what is said about it."""
