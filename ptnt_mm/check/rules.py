"""Rules for single settings: their paths, a predicate for wrong values, and the message.

``rule_table.py`` contains the rules. Each needs only the config.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from mmengine.config import Config

from ptnt_mm.config.hosts import scope_of
from ptnt_mm.config.settings import dicts_within, kind_of
from ptnt_mm.utils.findings import Finding, Severity
from ptnt_mm.utils.numbers import is_number


@dataclass(frozen=True)
class Length:
    """The length of training.

    Attributes:
        by_epoch: Whether its loop counts epochs, and not iterations.
        end: The number of epochs or iterations; infinite if it is not in the config.
    """

    by_epoch: bool
    end: float

    @property
    def text(self) -> str:
        """The end as text."""
        return f'{self.end:g} {"epochs" if self.by_epoch else "iterations"}'


class ConfigFacts:
    """A config, and facts about it that several rules need."""

    def __init__(self, config: Config):
        self.config = config
        self.scope = scope_of(config)

    @cached_property
    def length(self) -> Length:
        """The length of training."""
        loop = self.config.get('train_cfg') or {}
        by_epoch = 'max_epochs' in loop or bool(loop.get('by_epoch'))
        end = loop.get('max_epochs' if by_epoch else 'max_iters')
        return Length(by_epoch, end if is_number(end) and end > 0 else float('inf'))

    @cached_property
    def kept_ratios(self) -> set[bool]:
        """The values of keep_ratio in the training pipelines."""
        inside = dicts_within(self.config.get('train_dataloader'), '')
        return {bool(step['keep_ratio']) for _, step in inside if 'keep_ratio' in step}


@dataclass(frozen=True)
class Setting:
    """A value in a config.

    Attributes:
        path: Such as 'model.neck[0].in_channels'.
        value: Whatever is there.
        beside: The dict that contains it or its list.
        facts: The complete config, and facts about it.
    """

    path: str
    value: object
    beside: Mapping
    facts: ConfigFacts


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
        if self.scopes and setting.facts.scope not in self.scopes:
            return
        if self.kinds and kind_of(setting.beside) not in self.kinds:
            return
        if found := self.is_wrong(setting):
            what = self.what.format(value=setting.value, found=found)
            yield Finding(self.severity, setting.path, what, self.advice)


def check_rules(config: Config, rules: Iterable[Rule], keys: Iterable[str]) -> Iterator[Finding]:
    """Check all settings in some top-level keys of a config."""
    facts, rules = ConfigFacts(config), list(rules)
    for key in keys:
        for setting in _settings(config.get(key), key, config, facts):
            for rule in rules:
                yield from rule.check(setting)


def _settings(value: object, path: str, beside: Mapping, facts: ConfigFacts) -> Iterator[Setting]:
    """Yield a value and everything inside it."""
    yield Setting(path, value, beside, facts)
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _settings(inner, f'{path}.{key}', value, facts)
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from _settings(inner, f'{path}[{i}]', beside, facts)


def _escaped(pattern: str) -> str:
    """A pattern in which brackets are literal."""
    return pattern.replace('[', '[[]')
