"""Rules for single settings: their paths, a predicate for wrong values, and the message.

``rule_table.py`` contains the rules. Each needs only the config.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ptnt_mm.config.settings import type_name
from ptnt_mm.config.view import ConfigView
from ptnt_mm.utils.findings import Finding, Severity


@dataclass(frozen=True)
class Setting:
    """A value in a config.

    Attributes:
        path: Such as 'model.neck[0].in_channels'.
        value: Whatever is there.
        beside: The dict that contains it or its list.
        view: The complete config.
    """

    path: str
    value: object
    beside: Mapping
    view: ConfigView


Predicate = Callable[[Setting], object]
"""Whether a setting is wrong. A returned string replaces ``{found}`` in the message."""


@dataclass(frozen=True)
class Rule:
    """A kind of setting that can be wrong.

    Attributes:
        paths: Patterns of paths, in which an asterisk stands for any text.
        is_wrong: Whether a value is wrong.
        severity: How bad that is.
        what: The message; ``{value}`` and ``{found}`` are filled in.
        advice: What to do.
        scopes: The hosts that it applies to; empty for all.
        kinds: The classes of the dicts that have the setting; empty for all.
    """

    paths: str | tuple[str, ...]
    is_wrong: Predicate
    severity: Severity
    what: str
    advice: str = ''
    scopes: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    def check(self, setting: Setting) -> Iterator[Finding]:
        """The finding for a setting, if the rule applies and the value is wrong."""
        paths = (self.paths,) if isinstance(self.paths, str) else self.paths
        if not any(fnmatchcase(setting.path, _escaped(path)) for path in paths):
            return
        if self.scopes and setting.view.scope not in self.scopes:
            return
        if self.kinds and type_name(setting.beside) not in self.kinds:
            return
        if found := self.is_wrong(setting):
            what = self.what.format(value=setting.value, found=found)
            yield Finding(self.severity, setting.path, what, self.advice)


def check_rules(view: ConfigView, rules: Iterable[Rule], keys: Iterable[str]) -> Iterator[Finding]:
    """Check all settings in some top-level keys of a config."""
    rules = list(rules)
    for key in keys:
        for setting in _settings(view.config.get(key), key, view.config, view):
            for rule in rules:
                yield from rule.check(setting)


def _settings(value: object, path: str, beside: Mapping, view: ConfigView) -> Iterator[Setting]:
    """Yield a value and everything inside it."""
    yield Setting(path, value, beside, view)
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _settings(inner, f'{path}.{key}', value, view)
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from _settings(inner, f'{path}[{i}]', beside, view)


def _escaped(pattern: str) -> str:
    """A pattern in which brackets are literal."""
    return pattern.replace('[', '[[]')
