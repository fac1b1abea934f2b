"""Read the nested settings of a config."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain

from ptnt_mm.workbench.config.hosts import HOSTS

_SHARED = ('mmengine', 'mmcv', *HOSTS, 'ptnt_mm', 'torch')
"""Scopes whose class names are known here: a name means the same class with and without them."""


def scope_of(config: Mapping) -> str:
    """The scope that a config's types are looked up in.

    Configs in pure Python may state none, as their types are classes. Hosts still look up defaults
    by name, so it is then the host of the model's class, of a data set's, or of a part's.
    """
    if scope := config.get('default_scope'):
        return scope
    of_model = [part for _, part in dicts_within(config.get('model'), '')]
    of_data = (
        part
        for split in ('train', 'val', 'test')
        for _, part in dicts_within(config.get(f'{split}_dataloader'), '')
    )
    parts = chain(of_model[:1], of_data, of_model[1:])
    return next(filter(None, map(_host_of, parts)), 'mmengine')


def _host_of(settings: Mapping) -> str:
    """The host that has the class of settings, or one that it inherits from; else empty."""
    kind = settings.get('type')
    is_class = isinstance(kind, type)
    names = [cls.__module__ for cls in kind.__mro__] if is_class else [_full_name(settings)]
    return next((first for name in names if (first := name.partition('.')[0]) in HOSTS), '')


def type_name(settings: Mapping) -> str:
    """The class that settings name, for comparisons; empty if there is none.

    The scope or module of MMEngine, a host, torch or this package is left out. Anyone else's stays:
    'mine.CheckpointHook' is not MMEngine's hook.
    """
    name = _full_name(settings)
    return name.rpartition('.')[2] if name.partition('.')[0] in _SHARED else name


def as_list(settings: object) -> list:
    """A list or a tuple as a list, and anything else as a list of one."""
    return list(settings) if isinstance(settings, (list, tuple)) else [settings]


def short_name(settings: Mapping) -> str:
    """The same without any scope: for guesses by a part of the name, such as 'Load'."""
    return type_name(settings).rpartition('.')[2]


def is_warm_up(schedule: Mapping) -> bool:
    """Whether a schedule is of a kind that warms up."""
    return type_name(schedule).startswith(('Linear', 'Constant', 'QuadraticWarmup'))


def loads_annotations(name: str) -> bool:
    """Whether a transform of this name loads annotations, as those of all hosts are called."""
    return name.startswith('Load') and 'Annotation' in name


def _full_name(settings: Mapping) -> str:
    """The class name with its scope or module, if it has one."""
    kind = settings.get('type') or ''
    if not isinstance(kind, str):
        return f'{getattr(kind, "__module__", "")}.{getattr(kind, "__name__", kind)}'
    # MMEngine writes the scope of a base from another package like this.
    scope = settings.get('_scope_')
    return f'{scope}.{kind}' if scope and kind and '.' not in kind else kind


def with_moved_classes(text: str) -> str:
    """A path, or the text of a config, of an earlier version, with the paths of today's classes."""
    return re.sub(r'\bptnt_mm\.(?=(drawing|engine)\.)', 'ptnt_mm.workbench.', text)


def dicts_within(settings: object, path: str) -> Iterator[tuple[str, Mapping]]:
    """Yield settings and all dicts inside them, each with its path, such as 'model.neck[0]'."""
    if isinstance(settings, Mapping):
        yield path, settings
        for key, value in settings.items():
            yield from dicts_within(value, f'{path}.{key}')
    elif isinstance(settings, (list, tuple)):
        for i, value in enumerate(settings):
            yield from dicts_within(value, f'{path}[{i}]')


def flat_settings(settings: dict, prefix: str = '') -> dict[str, str]:
    """The repr of each value of settings by its dotted key; a list is one value."""
    flat = {}
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            flat.update(flat_settings(value, f'{prefix}{key}.'))
        else:
            flat[f'{prefix}{key}'] = repr(value)
    return flat
