"""Values as the code of a config."""

from collections.abc import Mapping
from typing import Any

from ptnt_mm.utils.text import printable


class Code(str):
    """An expression, which is written as it is."""


def literal(value: Any) -> str:
    """The code of a value; a dict becomes ``dict(key=value)``.

    MMEngine substitutes ``{{ ... }}`` before it runs a config, even in quotes, so that a class name
    from an untrusted file could become code. Braces are therefore escaped.
    """
    if isinstance(value, Code):
        return str(value)
    if isinstance(value, Mapping):
        return f'dict({", ".join(f"{key}={literal(item)}" for key, item in value.items())})'
    return repr(value).replace('{{', r'{\x7b')


def comment(text: str) -> str:
    """A comment after code; empty without text."""
    return f'  # {text}' if text else ''


def comment_line(text: str) -> str:
    """A comment line, whatever the text contains."""
    return f'# {printable(text)}'.replace('{{', '{ {')
