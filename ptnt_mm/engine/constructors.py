"""What the classes that a config names can be given, read from their signatures and sources."""

import ast
import contextlib
import functools
import importlib
import inspect
import re
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import mmengine.registry
from mmengine.registry import Registry

from ptnt_mm.models.backbone import Backbone

_REGISTRIES = [one for one in vars(mmengine.registry).values() if isinstance(one, Registry)]


_PLAIN = (bool, int, float, complex, str, list, tuple, types.NoneType)
_NAMED = {kind.__name__: kind for kind in _PLAIN} | {'None': types.NoneType}


@dataclass(frozen=True)
class Arguments:
    """What a class, or a function, takes.

    Attributes:
        parameters: By name, those of base classes included; None where the name alone is known.
        is_complete: Whether it takes nothing else.
    """

    parameters: dict[str, inspect.Parameter | None]
    is_complete: bool


@functools.cache
def classes_named(kind: object, scope: str) -> tuple[Callable, ...]:
    """The classes and functions that a ``type`` stands for, in whatever registries.

    Args:
        kind: A registered name, perhaps with its scope, or a class itself.
        scope: The config's default scope.
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
    """The names in MMEngine's registries and their children.

    Args:
        kind: Look into the registry of this name only, such as 'dataset' or 'mmdet::model'.
    """
    names: set[str] = set()
    for root in _REGISTRIES:
        if kind is None or root.name == kind.rpartition('::')[2]:
            for registry in (root, *root.children.values()):
                names.update(registry.module_dict)
    return names


@functools.cache
def arguments(cls: Callable) -> Arguments:
    """What a class or function takes; ``**kwargs`` are followed into the base classes."""
    if not isinstance(cls, type):
        return _own_arguments(cls, skip=0)[0]
    found: dict[str, inspect.Parameter | None] = {}
    is_complete = True
    for base in cls.__mro__[:-1]:
        if '__init__' not in vars(base):
            continue
        own, goes_on = _own_arguments(base.__init__, skip=1)
        found = {**own.parameters, **found}
        is_complete = is_complete and (own.is_complete or goes_on)
        if own.is_complete:
            return Arguments(found, is_complete)
    # Nothing more is known of the last one's **kwargs, or of a class without a constructor.
    return Arguments(found, False)


def plain_types(parameter: inspect.Parameter | None) -> set[type]:
    """The plain types that a parameter takes; none if it is not known, or may be others."""
    if parameter is None:
        return set()
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


def _own_arguments(function: Callable, skip: int) -> tuple[Arguments, bool]:
    """The arguments of a function itself, and whether ``**kwargs`` go to a base class alone.

    Args:
        function: A function or ``__init__``.
        skip: How many parameters to leave out: 1 for ``self``.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())[skip:]
    except (TypeError, ValueError):
        return Arguments({}, False), False
    rest = [one.name for one in parameters if one.kind is one.VAR_KEYWORD]
    variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    found = {one.name: one for one in parameters if one.kind not in variable}
    if not rest:
        return Arguments(found, True), False
    uses = list(_uses(function, rest[0]))
    taken_out = {use: None for use in uses if use}
    return Arguments({**taken_out, **found}, False), bool(uses) and None not in uses


def _uses(function: Callable, rest: str) -> Iterator[str | None]:
    """How a constructor uses its ``**kwargs``.

    Yields:
        The name of what is taken out of them, '' for a base class's constructor that gets them,
        and None for any other use.
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        yield None
        return
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or node.id != rest:
            continue
        parent, above = parents[node], parents.get(parents[node])
        match parent, above:
            case (
                ast.keyword(arg=None),
                ast.Call(func=ast.Attribute(ast.Call(ast.Name('super'), []), '__init__')),
            ):
                yield ''
            case ast.Subscript(slice=ast.Constant(name)), _:
                yield name
            case ast.Compare(left=ast.Constant(name)), _:
                yield name
            case ast.Attribute(), ast.Call(args=[ast.Constant(name), *_]):
                yield name
            case _:
                yield None
