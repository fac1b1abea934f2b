"""Read the config that a checkpoint contains, as data, and compare it with the current one."""

import ast
import warnings
from collections.abc import Iterator
from contextlib import suppress

from mmengine.config import Config, ConfigDict

from ptnt_mm.utils.text import printable
from ptnt_mm.workbench.config.literals import literal
from ptnt_mm.workbench.config.settings import with_moved_classes

# Characters: the longest config of the hosts has 270,000. Syntax trees are 100 times as large.
_LONGEST_CONFIG = 2**19

# For deep nesting, Python 3.13 raises a MemoryError, and older versions a RecursionError.
_UNREADABLE = (SyntaxError, TypeError, ValueError, RecursionError, MemoryError)

# Settings of one start rather than of the experiment; the seed is kept.
_PER_START_KEYS = (
    *('load_from', 'resume', 'work_dir', 'launcher', 'model.backbone.init_cfg', 'env_cfg'),
    *('randomness.seed', 'custom_imports'),
)


def stored_config(text: str) -> ConfigDict:
    """Read the config text stored in a checkpoint as data, without executing it.

    ``Config.pretty_text`` writes assignments of literals and ``dict(...)``; others are ignored.
    """
    settings = ConfigDict()
    if not isinstance(text, str) or len(text) > _LONGEST_CONFIG:
        return settings
    try:
        with warnings.catch_warnings(action='ignore'):
            statements = ast.parse(with_moved_classes(text)).body
    except _UNREADABLE:
        return settings
    for statement in statements:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            with suppress(*_UNREADABLE):
                value = literal(statement.value)
                repr(value)  # Python does not print integers of thousands of digits
                settings[statement.targets[0].id] = value
    return settings


def changed_settings(stored: ConfigDict, config: Config) -> Iterator[str]:
    """Differences between stored settings, if known, and the runner's; one line each."""
    if not stored:
        return
    for key, before, now in _differences(stored, stored_config(config.pretty_text)):
        if not key.startswith(_PER_START_KEYS):
            yield printable(f'{key}, from {before} to {now}', 1000)


def _differences(before: object, now: object, path: str = '') -> Iterator[tuple[str, str, str]]:
    """Yield the path of each difference between two settings, and both values as text."""
    sides = [{} if side is _NOTHING else side for side in (before, now)]
    if all(isinstance(side, dict) for side in sides) and any(sides):
        before, now = sides
        for key in sorted(before.keys() | now.keys(), key=str):
            inner = f'{path}.{key}' if path else str(key)
            yield from _differences(before.get(key, _NOTHING), now.get(key, _NOTHING), inner)
    elif _are_lists_of_dicts(before, now):
        for i, pair in enumerate(zip(before, now, strict=True)):
            yield from _differences(*pair, f'{path}[{i}]')
    elif repr(before) != repr(now):
        yield path, *('nothing' if value is _NOTHING else repr(value) for value in (before, now))


def _are_lists_of_dicts(before: object, now: object) -> bool:
    """Whether both are lists of dicts, of equal length and with the same types."""
    both = (before, now)
    if not all(isinstance(value, list) for value in both) or len(before) != len(now):
        return False
    types = [
        [item.get('type') if isinstance(item, dict) else None for item in value] for value in both
    ]
    return types[0] == types[1] and None not in types[0]


_NOTHING = object()
