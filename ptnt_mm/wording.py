"""How findings count, list and compare."""

from collections.abc import Iterable
from difflib import get_close_matches
from string import ascii_letters

from ptnt_mm.checkpoint import name_some

_EXAMPLES = 5


def some(names: Iterable[str]) -> str:
    """The first five of many names, and how many more."""
    return name_some(names, _EXAMPLES)


def nearest(name: str, known: Iterable[str]) -> str:
    """What somebody probably meant, as the end of a sentence: ``; nearest is 'cup'``."""
    by_fold = {other.casefold().strip(): other for other in known}
    near = get_close_matches(name.casefold().strip(), list(by_fold), n=1)
    return f'; nearest is {by_fold[near[0]]!r}' if near else ''


def slips(name: str) -> set[str]:
    """All words that a name becomes by a letter more or less, or by two letters swapped.

    Numbers are never misspelt: conv1 and conv2 are two things.
    """
    halves = [(name[:i], name[i:]) for i in range(len(name) + 1)]
    less = {a + b[1:] for a, b in halves if b and not b[0].isdigit()}
    swapped = {a + b[1] + b[0] + b[2:] for a, b in halves if len(b) > 1 and not b[:2].isdigit()}
    more = {a + letter + b for a, b in halves for letter in f'{ascii_letters}_'}
    return (less | swapped | more) - {name}


def binary(number: int) -> str:
    """A number of bytes in MiB or GiB."""
    return f'{number / 2**30:.1f} GiB' if number >= 2**30 else f'{number / 2**20:.0f} MiB'
