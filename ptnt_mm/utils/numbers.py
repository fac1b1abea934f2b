"""Numbers in files and settings."""

from ptnt_mm.utils.errors import UserError


def is_number(value: object) -> bool:
    """Whether a value is an int or a float. Booleans, which are ints in Python, are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def require_integer(name: str, value: object, least: int, also: str = '') -> None:
    """Raise a UserError unless an argument is an integer from ``least``, and no boolean.

    ``also`` is added to the message: what else is accepted.
    """
    if type(value) is not int or value < least:
        raise UserError(f'`{name}={value!r}`: expected an integer from {least}{also}')
