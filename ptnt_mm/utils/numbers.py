"""Numbers in files and settings."""


def is_number(value: object) -> bool:
    """Whether a value is an int or a float. Booleans, which are ints in Python, are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)
