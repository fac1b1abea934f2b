"""Numbers in files and settings."""

from ptnt_mm.utils.errors import UserError


def is_number(value: object) -> bool:
    """Whether a value is an int or a float. Booleans, which are ints in Python, are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_integer(value: object) -> bool:
    """Whether a value is an int, and no boolean."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_pair(value: object) -> bool:
    """Whether a value is a list or a tuple of two numbers, such as a size."""
    return isinstance(value, (list, tuple)) and len(value) == 2 and all(map(is_number, value))


def require_integer(name: str, value: object, least: int, also: str = '') -> None:
    """Raise a UserError unless an argument is an integer from ``least``, and no boolean.

    ``also`` is added to the message: what else is accepted.
    """
    if not is_integer(value) or value < least:
        raise UserError(f'`{name}={value!r}`: expected an integer from {least}{also}')
