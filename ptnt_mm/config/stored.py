"""Read the config that a checkpoint contains, as data, and compare it with the current one."""

import ast
import warnings
from collections.abc import Iterator
from contextlib import suppress

from mmengine.config import Config, ConfigDict

from ptnt_mm.config.literals import literal
from ptnt_mm.config.settings import flat_settings
from ptnt_mm.utils.text import printable

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
            statements = ast.parse(text).body
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
    before, now = flat_settings(stored), flat_settings(stored_config(config.pretty_text))
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key) and not key.startswith(_PER_START_KEYS):
            line = f'{key}, from {before.get(key, "nothing")} to {now.get(key, "nothing")}'
            yield printable(line, 1000)
