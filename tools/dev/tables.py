"""Write the tables of the docs that are made from declarations in the code.

python tools/dev/tables.py
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mmengine.registry import HOOKS, MODELS, Registry

import ptnt_mm.workbench  # noqa: F401  registers what only its configs name
from ptnt_mm.models import TimmFeatures
from ptnt_mm.models.backbone import Backbone
from ptnt_mm.workbench.check.rules import RULES, Rule
from ptnt_mm.workbench.cli.arguments import Argument, Command, Option, Switch
from ptnt_mm.workbench.cli.commands import COMMANDS
from ptnt_mm.workbench.cli.flags import as_flags
from ptnt_mm.workbench.data.formats import all_formats
from ptnt_mm.workbench.data.writers import all_writers
from ptnt_mm.workbench.project.detectors import names_by_task

_DOCS = Path(__file__).resolve().parents[2] / 'docs'
_LITERAL = re.compile(r'"([^"]+)"|(<\w+>)')  # a key or a tag

_FEWEST_ROWS = 6  # of a command with its own table, those above included
_HEAD = 'Argument', 'Meaning'


def _options() -> Iterator[str]:
    """Tables: for what several commands share, for each larger command, and for all others."""
    commands = {
        command.name if part is command else f'{command.name} {part.name}': dict(_rows(part))
        for command in COMMANDS.values()
        for part in (command, *command.parts)
    }
    counts = Counter(row for rows in commands.values() for row in rows)
    yield '\n## Several commands'
    yield from _table(_HEAD, *(row for row, count in counts.items() if count > 1))
    above = '[above](#several-commands)'
    own = {name: [row for row in rows if counts[row] == 1] for name, rows in commands.items()}
    shared = {
        name: ', '.join(f'`{word}`' for row, word in rows.items() if counts[row] > 1)
        for name, rows in commands.items()
    }
    small = [name for name, rows in commands.items() if len(rows) < _FEWEST_ROWS]
    for name in (name for name in own if name not in small):
        yield f'\n## ptnt {name}'
        yield from _table(_HEAD, *own[name])
        if shared[name]:
            yield f'\nAlso {shared[name]}: {above}.'
    yield '\n## Other commands'
    others = []
    for name in small:
        rows = [(shared[name], above)] if shared[name] else []
        others += [(f'`ptnt {name}`', *row) for row in rows + own[name]]
    yield from _table(('Command', *_HEAD), *others)


def _rows(command: Command) -> Iterator[tuple[tuple[str, str], str]]:
    """The row of each argument of a command, and the word for it."""
    for argument in (one for group in command.choices() for one in group if one.about):
        shown = _as_help_shows(argument)
        yield (f'`{shown}`', as_flags(argument.about)), shown.split()[0]


def _as_help_shows(argument: Argument) -> str:
    """As the help shows it: '--size H W'."""
    choices = '{' + ','.join(argument.choices) + '}' if argument.choices else argument.name.upper()
    value = argument.metavar or choices
    value = ' '.join(value) if isinstance(value, tuple) else value
    if not isinstance(argument, Option):
        return value
    return ', '.join(argument.words) + ('' if isinstance(argument, Switch) else f' {value}')


def _table(*rows: Sequence[str]) -> Iterator[str]:
    """The lines of a table, whose first row is its head."""
    head, *others = (f'| {" | ".join(cells)} |' for cells in rows)
    yield from ('', head, '|---' * len(rows[0]) + '|', *others)


def _formats() -> Iterator[str]:
    """A row for each label format."""
    rows = (
        (f'`{form.name}`', form.title, ', '.join(form.tasks), _signs(form.looks_for), form.note)
        for form in all_formats()
    )
    return _table(('`--format`', 'Format', 'Tasks', 'Recognised by', 'Notes'), *rows)


def _detectors() -> Iterator[str]:
    """A row for the models of each task."""
    rows = (
        (task, ', '.join(f'`{name}`' for name in names)) for task, names in names_by_task().items()
    )
    return _table(('Task', '`--detector`, the default first'), *rows)


def _writers() -> Iterator[str]:
    """A row for each format that labels are written in."""
    rows = (
        (f'`{name}`', writer.files, writer.scores, writer.masks or 'no place; a line says so')
        for name, writer in all_writers().items()
    )
    return _table(('`--labels`', 'Files in `OUT/labels`', 'Score', 'Masks'), *rows)


def _signs(text: str) -> str:
    """What a format is recognised by, with keys and tags as code."""
    return _LITERAL.sub(lambda found: f'`{found[1] or found[2]}`', as_flags(text))


def _rules() -> Iterator[str]:
    """A row for each rule about a setting."""
    return _table(('Setting', 'Finding', 'When', 'What it says'), *map(_row_of_rule, RULES))


def _row_of_rule(rule: Rule) -> tuple[str, ...]:
    says = '; '.join(filter(None, (rule.what, rule.advice)))
    return _settings_of(rule), rule.severity, _when(rule), _without_values(as_flags(says))


def _when(rule: Rule) -> str:
    """The first sentence of a predicate's docstring, up to what it returns."""
    sentence, _, _ = rule.is_wrong.__doc__.split('\n')[0].partition(';')
    return re.sub('^(An?|The) ', lambda article: article[0].lower(), sentence.rstrip('.'))


def _settings_of(rule: Rule) -> str:
    """The settings of a rule, and the classes and the host that they are of."""
    paths = [rule.paths] if isinstance(rule.paths, str) else rule.paths
    hosts = f' ({", ".join(rule.scopes)})' if len(rule.scopes) == 1 else ''
    classes = ', '.join(f'`{kind}`' for kind in rule.kinds)
    return ', '.join(f'`{path}`' for path in paths) + (f' of {classes}' if classes else '') + hosts


def _without_values(text: str) -> str:
    """The text of a finding with dots in place of the values that it names."""
    return re.sub(r'{[^}]*}', '…', text).replace('|', r'\|')


def _classes(registry: Registry, is_listed: Callable[[type], bool]) -> Iterator[str]:
    """The classes in a registry that one of our modules defines, for Sphinx."""
    yield '\n```{eval-rst}'
    for cls in registry.module_dict.values():
        if cls.__module__.startswith('ptnt_mm.') and is_listed(cls):
            yield f'.. autoclass:: {cls.__module__}.{cls.__name__}'
    yield '```'


def _backbones() -> Iterator[str]:
    classifiers = 'ptnt_mm.models.classifiers'
    return _classes(
        MODELS,
        lambda cls: issubclass(cls, (Backbone, TimmFeatures)) and cls.__module__ != classifiers,
    )


def _necks() -> Iterator[str]:
    return _classes(MODELS, lambda cls: cls.__module__ == 'ptnt_mm.models.necks')


def _hooks() -> Iterator[str]:
    return _classes(HOOKS, lambda cls: True)


PAGES: dict[str, dict[str, Callable[[], Iterator[str]]]] = {
    'options.md': {'options': _options},
    'check_rules.md': {'rules': _rules},
    'data.md': {'detectors': _detectors},
    'formats.md': {'formats': _formats},
    'inference.md': {'writers': _writers},
    'config_reference.md': {'backbones': _backbones, 'necks': _necks, 'hooks': _hooks},
}
"""For each page its tables, which stand between marks: <!-- options --> and <!-- /options -->."""


def with_tables(name: str) -> str:
    """The text of a page with its tables as the code declares them."""
    page = (_DOCS / name).read_text(encoding='utf-8')
    for mark, rows in PAGES[name].items():
        first, last = f'<!-- {mark} -->\n', f'<!-- /{mark} -->'
        before, rest = page.split(first)
        _, after = rest.split(last)
        page = ''.join((before, first, '\n'.join(rows()), '\n\n', last, after))
    return page


if __name__ == '__main__':
    for name in PAGES:
        (_DOCS / name).write_text(with_tables(name), encoding='utf-8')
