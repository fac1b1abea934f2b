"""Values as the code of a config."""

from collections.abc import Iterator, Mapping
from typing import Any

from ptnt_mm.utils.text import printable

_WIDTH = 120  # columns of an indented line


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


def keyword(name: str, settings: Mapping[str, Any], because: str = '') -> Iterator[str]:
    """The code of ``name=dict(...),``: a line, or several if it is too long for one."""
    line = f'{name}={literal(settings)},{comment(because)}'
    if len(line) <= _WIDTH:
        yield line
        return
    yield f'{name}=dict({comment(because)}'
    row = ''
    for key, value in settings.items():
        item = f'{key}={literal(value)},'
        if row and len(row) + len(item) >= _WIDTH:
            yield f'    {row}'
            row = ''
        row = f'{row} {item}'.lstrip()
    yield f'    {row}'
    yield '),'


def comment_line(text: str) -> str:
    """A comment line, whatever the text contains."""
    return f'# {printable(text)}'.replace('{{', '{ {')
