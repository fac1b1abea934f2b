"""Sample data sets of every format, a module for each."""

import pkgutil
from importlib import import_module

_MODULES = [import_module(f'{__name__}.{module.name}') for module in pkgutil.iter_modules(__path__)]

SAMPLES = [sample for module in _MODULES for sample in module.SAMPLES]
