"""Types of the values of options, besides those of Python. argparse prints their errors."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from contextlib import suppress


def number(
    read: Callable[[str], float], expected: str, fits: Callable[[float], bool]
) -> Callable[[str], float]:
    """A type: a number that fits, as ``expected`` describes it."""

    def checked(text: str) -> float:
        with suppress(ValueError):
            if fits(value := read(text)):
                return value
        raise ArgumentTypeError(f'{text!r} is not {expected}')

    return checked


def at_least(least: int) -> Callable[[str], float]:
    """A type: an integer from ``least``."""
    return number(int, f'an integer from {least}', lambda value: value >= least)


positive, not_negative = at_least(1), at_least(0)
seed = number(int, 'an integer from 0 to 4294967295', lambda value: 0 <= value < 2**32)
tile = number(int, '0 or an integer from 32', lambda value: value == 0 or value >= 32)
score = number(float, 'a number from 0 to 1', lambda value: 0 <= value <= 1)


def setting(text: str) -> str:
    """KEY=VALUE, unchanged."""
    if '=' not in text:
        raise ArgumentTypeError(
            f"{text!r}: expected KEY=VALUE ..., with a number, a word or a list, such as '[1,2]'"
        )
    return text


def patterns(text: str) -> str:
    """Two patterns with {}, unchanged."""
    if text.count('{}') < 2 or ' ' not in text.strip():
        raise ArgumentTypeError(
            f"{text!r}: expected two patterns with {{}}, such as 'images/{{}}.jpg masks/{{}}_m.png'"
        )
    return text


def point(text: str) -> tuple[float, float]:
    """Two numbers from text such as '120,80'."""
    try:
        x, y = map(float, text.split(','))
    except ValueError as error:
        raise ArgumentTypeError(f'{text!r} is not a pixel such as 120,80') from error
    return x, y
