"""Label formats, a module each: what it is called, how it is recognised, and its reader.

A module has the name of its format, with _ for -, and declares it as ``FORMAT``. Listing the names,
as the help does, imports none of them.
"""

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ptnt_mm.workbench.data.reading.format import Format

_MODULES = tuple(module.name for module in pkgutil.iter_modules(__path__))

FORMAT_NAMES = tuple(name.replace('_', '-') for name in _MODULES)
"""The values of ``--format``."""


@cache
def all_formats() -> tuple['Format', ...]:
    """The formats in the order in which they are tried."""
    formats = (import_module(f'{__name__}.{name}').FORMAT for name in _MODULES)
    return tuple(sorted(formats, key=lambda form: (form.order, form.name)))
