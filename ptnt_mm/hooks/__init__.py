"""Hooks and a training loop that any MMEngine config can name.

Importing this package imports all of its modules, which registers their classes.
"""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f'{__name__}.{_module.name}')
