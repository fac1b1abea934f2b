"""What the classes that a config names can be given, read from their signatures and sources."""

import contextlib
import functools
import importlib
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import NamedTuple

import mmengine.registry
from mmengine.registry import Registry

from ptnt_mm.models.backbone import Backbone

_REGISTRIES = [one for one in vars(mmengine.registry).values() if isinstance(one, Registry)]
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

_PLAIN = (bool, int, float, complex, str, list, tuple, types.NoneType)
_NAMED = {kind.__name__: kind for kind in _PLAIN} | {'None': types.NoneType}


class Arguments(NamedTuple):
    """What a class, or a function, takes."""

    parameters: dict[str, inspect.Parameter]
    """By name; where ``**kwargs`` go on to base classes, theirs too."""

    is_complete: bool
    """Whether it takes nothing else: it has no ``**kwargs``."""


@functools.cache
def classes_named(kind: object, scope: str) -> tuple[Callable, ...]:
    """The classes and functions that a ``type``, a name or a class, stands for in registries.

    ``scope`` is the config's default scope.
    """
    if not isinstance(kind, str):
        return (kind,) if callable(kind) else ()
    with contextlib.suppress(ImportError):
        # Registries of a library are there once this is imported, and import the rest themselves.
        importlib.import_module(f'{scope}.registry')
    found = []
    for root in _REGISTRIES:
        try:
            found.append(root.children.get(scope, root).get(kind))
        except Exception:  # a name with dots is imported, which may raise anything
            continue
    return tuple(dict.fromkeys(one for one in found if one is not None))


def is_of_family(settings: Mapping, scope: str) -> bool:
    """Whether settings are of a backbone of ours; mmpretrain has a TNT of its own."""
    classes = classes_named(settings.get('type'), scope)
    return any(isinstance(cls, type) and issubclass(cls, Backbone) for cls in classes)


def registered_names(kind: str | None = None) -> set[str]:
    """The names in all registries, or in those of a kind, as 'dataset' or 'mmdet::model'."""
    names: set[str] = set()
    for root in _REGISTRIES:
        if kind is None or root.name == kind.rpartition('::')[2]:
            for registry in (root, *root.children.values()):
                names.update(registry.module_dict)
    return names


@functools.cache
def arguments(cls: Callable) -> Arguments:
    """What a class or function takes; ``**kwargs`` are followed into the base classes."""
    bases = cls.__mro__[:-1] if isinstance(cls, type) else ()
    constructors = [vars(base)['__init__'] for base in bases if '__init__' in vars(base)]
    found: dict[str, inspect.Parameter] = {}
    for function in constructors or [cls]:
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):  # written in C
            break
        found = {one.name: one for one in parameters if one.name != 'self'} | found
        if not any(one.kind is one.VAR_KEYWORD for one in parameters):
            break
    named = {name: one for name, one in found.items() if one.kind not in _VARIABLE}
    return Arguments(named, len(named) == len(found) > 0)


def plain_types(parameter: inspect.Parameter) -> set[type]:
    """The plain types that a parameter takes; none if it may be others."""
    if parameter.annotation is not parameter.empty:
        return _leaves(parameter.annotation)
    return {int, float} if type(parameter.default) in (int, float) else set()


@functools.cache
def words(classes: frozenset[Callable]) -> frozenset[str]:
    """All words in the files that define classes, their bases, and functions.

    And in those of the classes and functions that they import, to which settings are handed on:
    two steps far, as from a detector to its encoder and from there to a layer.
    """
    bases = {base for cls in classes for base in getattr(cls, '__mro__', (cls,))}
    modules = {getattr(base, '__module__', None) for base in bases}
    for _ in range(2):
        modules = modules.union(*map(_imported, modules))
    return frozenset().union(*map(_words_of_module, modules))


def _leaves(annotation: object) -> set[type]:
    origin = typing.get_origin(annotation)
    if isinstance(annotation, str):
        # Not evaluated: plain ones say enough.
        leaves = [{_NAMED.get(name.strip())} - {None} for name in annotation.split('|')]
    elif origin in (typing.Union, types.UnionType):
        leaves = [_leaves(part) for part in typing.get_args(annotation)]
    else:
        leaves = [{origin or annotation} & set(_PLAIN)]
    return set().union(*leaves) if all(leaves) else set()


@functools.cache
def _imported(module: str | None) -> frozenset[str]:
    """The modules that define what a module imports by name; torch's are left out."""
    values = vars(sys.modules.get(module, types)).values()
    names = {str(getattr(value, '__module__', '')) for value in values if callable(value)}
    return frozenset(name for name in names if name.startswith(('mm', 'ptnt_mm')))


@functools.cache
def _words_of_module(module: str | None) -> frozenset[str]:
    try:
        return frozenset(re.findall(r'\w+', inspect.getsource(sys.modules[module])))
    except (KeyError, OSError, TypeError):
        return frozenset()
