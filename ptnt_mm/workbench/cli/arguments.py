"""Arguments of command lines as data, for argparse and the docs. Only Python is needed."""

from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Argument:
    """A word of a command line that needs no flag."""

    name: str  # also in Python
    about: str  # its meaning in one sentence without a full stop; empty to hide it
    type: Callable[[str], Any] | None = None  # reads a word; None for text
    default: Any = None
    metavar: str | tuple[str, ...] | None = None  # how the help shows the value
    choices: tuple[str, ...] = ()  # empty for any value
    names: tuple[str, ...] = ()  # only for the help: the function checks the value
    nargs: int | str | None = None  # how many words, as argparse expects it; None for one
    instead_of: str = ''  # the argument of the same command that it excludes
    flags: tuple[str, ...] = ()  # of an option, if they are not made from the name
    alone: str | None = None  # an option's value if its flag has none; None if it needs one
    required: bool = False  # whether an option must be given

    @property
    def words(self) -> tuple[str, ...]:
        """What the command line calls it."""
        return (self.name,)

    @property
    def help(self) -> str:
        """Its sentence, and its names if it has a list of them."""
        return f'{self.about}. Known: {", ".join(self.names)}' if self.names else self.about

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments of argparse's ``add_argument``, except for the help."""
        names = ('type', 'metavar', 'choices', 'nargs')
        given = {name: value for name in names if (value := getattr(self, name))}
        return given if self.default is None else given | dict(default=self.default)


@dataclass(frozen=True)
class Option(Argument):
    """A flag with a value."""

    @property
    def words(self) -> tuple[str, ...]:
        """Its flags: that of ``score_thr`` is ``--score-thr``."""
        return self.flags or (f'--{self.name.replace("_", "-")}',)

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments of argparse's ``add_argument``, except for the help."""
        alone = {} if self.alone is None else dict(nargs='?', const=self.alone)
        return super().settings | dict(dest=self.name, required=self.required) | alone

    def as_typed(self, value: str | None) -> str:
        """How to type it, with a value if a message names one."""
        if value and self.nargs == 2:  # a tuple
            value = value.strip('()').replace(',', '')
        return self.words[-1] if value in (None, self.alone) else f'{self.words[-1]} {value}'


@dataclass(frozen=True)
class Repeatable(Option):
    """A flag that takes several values, and may be repeated."""

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments of argparse's ``add_argument``, except for the help."""
        return super().settings | dict(nargs='+', action='extend', default=[])


@dataclass(frozen=True)
class Switch(Option):
    """A flag without a value, which inverts the default; its sentence says what that does."""

    default: bool = False

    @property
    def settings(self) -> dict[str, Any]:
        """The keyword arguments of argparse's ``add_argument``, except for the help."""
        return dict(dest=self.name, action=f'store_{str(not self.default).lower()}')

    def as_typed(self, value: str | None) -> str:
        """How to type it."""
        return self.words[-1]


@dataclass(frozen=True)
class Command:
    """A command of ``ptnt``, or a part of one."""

    name: str  # its first word
    title: str  # its line in a list of commands
    about: str = ''  # the start of its help, with an example
    words: tuple[Argument, ...] = ()  # what only the command line has
    keywords: tuple[Option, ...] = ()  # arguments of the function with this name in `ptnt_mm.api`
    function: str = ''  # the name of that function, if it differs
    parts: tuple['Command', ...] = ()  # commands that may follow the first word
    needs_part: bool = False  # whether one of them must follow
    order: int = 99  # its place in a list of commands
    runs_hooks: bool = False  # whether it runs code of a config that may rely on Python's exit

    def given(self, args: Namespace) -> dict[str, Any]:
        """The keyword arguments of its function, from a parsed command line."""
        return {option.name: getattr(args, option.name) for option in self.keywords}

    def choices(self) -> Iterator[list[Argument]]:
        """All arguments in the order of the help: only one of each list can be given."""
        lists: dict[str, list[Argument]] = {}
        for argument in (*self.words, *self.keywords):
            lists.setdefault(argument.instead_of or argument.name, []).append(argument)
        yield from lists.values()
