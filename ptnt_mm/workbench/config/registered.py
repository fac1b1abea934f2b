"""Look up the classes in a config, and the arguments of their constructors."""

import contextlib
import functools
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass

import mmengine.registry
from mmengine.registry import Registry

_REGISTRIES = [value for value in vars(mmengine.registry).values() if isinstance(value, Registry)]


@dataclass(frozen=True)
class Arguments:
    """The arguments of a class or a function.

    Attributes:
        parameters: Parameters by name, including those of base classes.
        is_complete: Whether there are no others; False with ``**kwargs``.
    """

    parameters: dict[str, inspect.Parameter]
    is_complete: bool


@functools.cache
def classes_named(kind: object, scope: str) -> tuple[Callable, ...]:
    """The classes and functions that a ``type`` refers to, in any registry.

    Args:
        kind: A registered name, optionally with its scope, or a class.
        scope: The config's default scope.
    """
    if not isinstance(kind, str):
        return (kind,) if callable(kind) else ()
    with contextlib.suppress(ImportError):
        # Importing this creates the registries of a library, which import the rest themselves.
        importlib.import_module(f'{scope}.registry')
    found = []
    for root in _REGISTRIES:
        try:
            found.append(root.children.get(scope, root).get(kind))
        except Exception:  # a name with dots is imported, which may raise anything
            continue
    return tuple(dict.fromkeys(cls for cls in found if cls is not None))


def registered_names(kind: str = '', scope: str = '') -> set[str]:
    """The names in MMEngine's registries and their children.

    Args:
        kind: Search only the registry of this name, such as 'dataset'.
        scope: The config's default scope: names of other libraries then begin with theirs, such as
            'mmdet.CocoMetric', as a config must write them.
    """
    names: set[str] = set()
    for root in _REGISTRIES:
        if kind in ('', root.name):
            for registry in (root, *root.children.values()):
                is_own = registry.scope in (scope, root.scope)
                prefix = '' if is_own or not scope else f'{registry.scope}.'
                names.update(f'{prefix}{name}' for name in registry.module_dict)
    return names


@functools.cache
def arguments_of(cls: Callable) -> Arguments:
    """The arguments of a class or a function; ``**kwargs`` are followed into the base classes."""
    if not isinstance(cls, type):
        return _own_arguments(cls, skip=0)
    found: dict[str, inspect.Parameter] = {}
    constructors = [base.__init__ for base in cls.__mro__[:-1] if '__init__' in vars(base)]
    for depth, constructor in enumerate(constructors):
        own = _own_arguments(constructor, skip=1)
        found = {**own.parameters, **found}
        if own.is_complete:
            return Arguments(found, is_complete=depth == 0)
    return Arguments(found, False)


def _own_arguments(function: Callable, skip: int) -> Arguments:
    """The arguments of a function or of ``__init__``, without the first ``skip``."""
    try:
        parameters = list(inspect.signature(function).parameters.values())[skip:]
    except (TypeError, ValueError):
        return Arguments({}, False)
    variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    found = {param.name: param for param in parameters if param.kind not in variable}
    return Arguments(found, all(param.kind is not param.VAR_KEYWORD for param in parameters))
