"""Values as the code of a config."""

from collections.abc import Mapping
from typing import Any

from ptnt_mm.utils.text import printable


class Code(str):
    """An expression, which is written as it is."""


def literal(value: Any) -> str:
    """The code of a value; a dict becomes ``dict(key=value)``.

    MMEngine fills in ``{{ ... }}`` before it runs a config, in quotes, too. So a class name from a
    stranger's file could become code: its braces are escaped.
    """
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, Mapping):
        return f'dict({", ".join(f"{key}={literal(one)}" for key, one in value.items())})'
    return repr(value).replace('{{', r'{\x7b')


def comment(text: str) -> str:
    """A comment behind code; nothing if there is no text."""
    return f'  # {text}' if text else ''


def comment_line(text: str) -> str:
    """A line of comment, whatever the text holds."""
    return f'# {printable(text)}'.replace('{{', '{ {')
