"""Arguments of command lines as data, for argparse and the docs. Only Python is needed."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Argument:
    """A word of a command line that needs no flag.

    Attributes:
        name: Its name, also in Python.
        about: Its meaning in one sentence without a full stop; empty to hide it.
        type: Reads a word; None for text.
        default: The value if it is not given.
        metavar: How the help shows the value.
        choices: The values that there are; empty for any.
        nargs: How many words there are, as argparse expects it; None for one.
        instead_of: The argument of the same command that it excludes.
        flags: Of an option, if they are not made from the name.
        alone: The value of an option's flag without a value; None if it needs one.
        required: Whether an option must be given.
    """

    name: str
    about: str
    type: Callable[[str], Any] | None = None
    default: Any = None
    metavar: str | tuple[str, ...] | None = None
    choices: tuple[str, ...] = ()
    nargs: int | str | None = None
    instead_of: str = ''
    flags: tuple[str, ...] = ()
    alone: str | None = None
    required: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """What the command line calls it."""
        return (self.name,)

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
    """A command of ``ptnt``, or a part of one.

    Attributes:
        name: Its first word.
        title: Its line in a list of commands.
        about: The start of its help, with an example.
        words: What only the command line has.
        keywords: The keyword arguments of the function with this name in `ptnt_mm.api`.
        function: The name of that function, if it differs.
        parts: Commands that may follow the first word.
        needs_part: Whether one of them must follow.
    """

    name: str
    title: str
    about: str = ''
    words: tuple[Argument, ...] = ()
    keywords: tuple[Option, ...] = ()
    function: str = ''
    parts: tuple['Command', ...] = ()
    needs_part: bool = False

    def choices(self) -> Iterator[list[Argument]]:
        """All arguments in the order of the help: only one of each list can be given."""
        lists: dict[str, list[Argument]] = {}
        for argument in (*self.words, *self.keywords):
            lists.setdefault(argument.instead_of or argument.name, []).append(argument)
        yield from lists.values()
