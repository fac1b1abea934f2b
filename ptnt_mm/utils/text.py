"""Words for messages: lists cut short, nearest names, sizes, text that is safe to print."""

from collections.abc import Iterable
from difflib import get_close_matches
from string import ascii_letters

_EXAMPLES = 5


def printable(text: str, limit: int = 200) -> str:
    """Text from a file as one line: cut, and without characters that steer a terminal."""
    shown = ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:limit])
    return shown + '...' * (len(text) > limit)


def name_some(keys: Iterable[str], limit: int = 4) -> str:
    """The first few of many names: 'a, b, c, d and 9 more'."""
    keys = [printable(key) for key in keys]
    more = f' and {len(keys) - limit} more' if len(keys) > limit else ''
    return ', '.join(keys[:limit]) + more


def some(names: Iterable[str]) -> str:
    """The first five of many names, and how many more."""
    return name_some(names, _EXAMPLES)


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that somebody probably meant, in any case; None if none is near."""
    by_fold = {other.casefold().strip(): other for other in known}
    near = get_close_matches(name.casefold().strip(), list(by_fold), n=1)
    return by_fold[near[0]] if near else None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the closest known name as the end of a sentence: ``; nearest is 'cup'``."""
    near = closest(name, known)
    return f'; nearest is {near!r}' if near else ''


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
