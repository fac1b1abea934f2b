"""Packages whose modules declare one thing each, such as a label format.

Adding a module is all that it takes to add one. The names are those of the modules, with - for _,
so that listing them imports none.
"""

import pkgutil
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any


def names_in(path: Iterable[str]) -> tuple[str, ...]:
    """The names in a package, given its ``__path__``."""
    return tuple(module.name.replace('_', '-') for module in pkgutil.iter_modules(path))


def declared(package: str, names: Iterable[str], attribute: str) -> Iterator[Any]:
    """The value of an attribute in the module of each name."""
    for name in names:
        yield getattr(import_module(f'{package}.{name.replace("-", "_")}'), attribute)
