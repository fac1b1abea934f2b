"""Text for messages: shortened lists, nearest names, sizes, text that is safe to print."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from string import ascii_letters
from typing import TypeVar

T = TypeVar('T')

_LISTED = 20  # maximum number of known names to list
_LETTERS = f'{ascii_letters}_'
_LOOKS_LIKE = {'0': 'o', '1': 'l'}


def printable(text: str, limit: int = 200) -> str:
    """Text from a file as one line: shortened, and without control characters."""
    shown = ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:limit])
    return f'{shown}...' if len(text) > limit else shown


def first_few(names: Iterable[str], limit: int = 5) -> str:
    """The first few of many names: 'a, b, c, d, e and 9 more'."""
    names = [printable(name) for name in names]
    more = f' and {len(names) - limit} more' if len(names) > limit else ''
    return ', '.join(names[:limit]) + more


def suggest(name: object, known: Iterable[str], wording: str = 'did you mean {!r}?') -> str:
    """Insert the known name nearest to an unknown one into ``wording``.

    Case does not matter. The result is empty if no known name is near.
    """
    by_fold = {other.casefold().strip(): other for other in known}
    folded = str(name).casefold().strip()
    matches = get_close_matches(folded, list(by_fold))
    # The same letters in a different order, before what is as near by other letters.
    matches.sort(key=lambda other: sorted(other) != sorted(folded))
    return wording.format(by_fold[matches[0]]) if matches else ''


def unknown_name(what: str, name: object, known: Iterable[str]) -> str:
    """Message about an unknown name, with the nearest one, or with the first known ones."""
    known = list(known)
    suggestion = suggest(name, known)
    few = len(known) <= _LISTED or not suggestion
    listed = f'expected one of {first_few(known, _LISTED)}' if few else ''
    return f'unknown {what} {name!r}: {" ".join(filter(None, (suggestion, listed)))}'


def nfc(text: str) -> str:
    """A text with accented letters as single characters; macOS separates letter and accent."""
    return unicodedata.normalize('NFC', text)


def name_key(name: str) -> str:
    """A key that is equal for names that differ only in capitals or in how accents are written."""
    return nfc(name.casefold())


def finder(items: Mapping[str, T]) -> Callable[[str], T | None]:
    """Find items by name: the one that is written so, or the only one with the same key."""
    exact, by_key = {nfc(name): item for name, item in items.items()}, {}
    for name in exact:
        by_key.setdefault(name_key(name), []).append(name)

    def find(name: str) -> T | None:
        alike = by_key.get(name_key(name), [])
        return exact.get(nfc(name)) or (exact[alike[0]] if len(alike) == 1 else None)

    return find


def folded(name: str) -> str:
    """A name in small letters, without spaces, hyphens and underscores between its words.

    Those between two numbers stay, and hyphens at its ends: '1-1', 'A-'.
    """
    return _SEPARATORS.sub('', nfc(name).strip(' _')).casefold()


def spellings(names: Iterable[str]) -> list[list[str]]:
    """Groups of names that differ only in capitals, spaces, hyphens or underscores."""
    groups: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        groups.setdefault(folded(name), []).append(name)
    return [group for group in groups.values() if len(group) > 1]


_SEPARATORS = re.compile(r'(?<=[^\W\d_])[\s_-]+(?=[^\W_])|(?<=\d)[\s_-]+(?=[^\W\d_])')


def misspellings(name: str) -> set[str]:
    """All words made from a name by adding or removing one letter, or by swapping two.

    Numbers are never misspelt: conv1 and conv2 are two things.
    """
    halves = _halves(name)
    fewer = {a + b[1:] for a, b in halves if b and not b[0].isdigit()}
    swapped = {a + b[1] + b[0] + b[2:] for a, b in halves if len(b) > 1 and not b[:2].isdigit()}
    more = {a + letter + b for a, b in halves for letter in _LETTERS}
    return (fewer | swapped | more) - {name}


def with_another_letter(name: str) -> set[str]:
    """All words made from a name by replacing one letter, not only its case.

    Often these are different words: 'micro' and 'macro', 'conv' and 'Conv'. Of numbers, only those
    are replaced that look like letters.
    """
    read = {a + _LOOKS_LIKE[b[0]] + b[1:] for a, b in _halves(name) if b[:1] in _LOOKS_LIKE}
    return read | {
        a + letter + b[1:]
        for a, b in _halves(name)
        if b[:1].isalpha()
        for letter in _LETTERS
        if letter.casefold() != b[0].casefold()
    }


def _halves(name: str) -> list[tuple[str, str]]:
    return [(name[:i], name[i:]) for i in range(len(name) + 1)]


def counted(number: int, noun: str) -> str:
    """A number with its noun in the singular or plural: '1 process', '8,000 processes'."""
    ending = 'es' if noun.endswith(('s', 'x')) else 's'
    return f'{number:,} {noun}{"" if number == 1 else ending}'


def from_here(path: Path | str) -> str:
    """A path as seen from the current folder, if it is in it."""
    path = Path(path)
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


def format_bytes(number: int) -> str:
    """A number of bytes in MiB or GiB."""
    return f'{number / 2**30:.1f} GiB' if number >= 2**30 else f'{number / 2**20:.0f} MiB'


def duration(seconds: float) -> str:
    """A time as people say it: '40 s', '12 min', '3 h 20 min', '2 d 3 h'."""
    seconds = max(seconds, 0)
    if seconds < 99.5:
        return f'{seconds:.0f} s'
    minutes = round(seconds / 60)
    if minutes < 100:
        return f'{minutes} min'
    hours, minutes = divmod(minutes, 60)
    return f'{hours} h {minutes} min' if hours < 48 else f'{hours // 24} d {hours % 24} h'


def natural_order(name: str) -> list[tuple[int, str]]:
    """A key to sort names by the numbers in them: 2 before 10."""
    parts = re.split(r'(\d+)', name)
    return [(int(part), '') if part.isdecimal() else (-1, part) for part in parts]
