"""How findings count, list and compare."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from os.path import commonprefix

from ptnt_mm.checkpoint import name_some

_EXAMPLES = 5
_NUMBER = re.compile(r'\d')


def some(names: Iterable[str]) -> str:
    """The first five of many names, and how many more."""
    return name_some(names, _EXAMPLES)


def nearest(name: str, known: Iterable[str]) -> str:
    """What somebody probably meant, as the end of a sentence: ``; nearest is 'cup'``."""
    by_fold = {other.casefold().strip(): other for other in known}
    near = get_close_matches(name.casefold().strip(), list(by_fold), n=1)
    return f'; nearest is {by_fold[near[0]]!r}' if near else ''


def is_slip(name: str, other: str) -> bool:
    """Whether two words of four letters or more differ by a letter left out, or by two swapped."""
    start = len(commonprefix((name, other)))
    end = len(commonprefix((name[start:][::-1], other[start:][::-1])))
    parts = [word[start : len(word) - end] for word in (name, other)]
    left_out = sorted(map(len, parts)) == [0, 1]
    swapped = len(parts[0]) == 2 and parts[0] == parts[1][::-1]
    # Numbers are never misspelt: conv1 and conv are two things.
    return (left_out or swapped) and min(len(name), len(other)) > 3 and not _NUMBER.search(
        ''.join(parts)
    )


def binary(number: int) -> str:
    """A number of bytes in MiB or GiB."""
    return f'{number / 2**30:.1f} GiB' if number >= 2**30 else f'{number / 2**20:.0f} MiB'
