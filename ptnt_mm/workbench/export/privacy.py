"""Remove traces of the training machine from a config."""

import getpass
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePath, PureWindowsPath
from typing import Any

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import first_few, printable

# Settings of one start, and of services that record runs: addresses, projects, accounts.
_PER_RUN = frozenset(
    {'work_dir', 'load_from', 'resume', 'launcher', 'visualizer', 'vis_backends', 'log_processor'}
)

# An absolute path, from its root to the next character that ends a word.
_ABSOLUTE = re.compile(r'(?<![\w.:/\\~-])(?:/|~/|[A-Za-z]:[\\/]|\\\\)[^\s\'",;:|()\[\]{}]+')
_WHOLE = re.compile(
    r"""~?/[^\s/\\'",;|:](?:(?!\s[/~])[^\\'",;|:\n])*"""
    r"""|(?:[A-Za-z]:[\\/]|\\\\)(?:(?!\s(?:[/~\\]|[A-Za-z]:))[^'",;|:\n])*"""
)
"""A text that is one such path, perhaps with spaces."""

_LOGIN = re.compile(r'(?<=://)[^/\s@]+@')
_SECRET = re.compile(
    r'\b(?:hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|AKIA[A-Z0-9]{16}|sk-[\w-]{20,})'
)
_COMMON_USERS = frozenset({'root', 'user', 'users', 'admin', 'ubuntu', 'localhost'})


def without_traces(settings: dict) -> tuple[dict, list[str]]:
    """A config without settings of one run, weights to start from, absolute paths and logins.

    Returns:
        The settings, and a line for each setting that was removed or shortened.
    """
    changes: list[str] = []
    return _cleaned(settings, '', changes), changes


def check_traces(text: str) -> Iterator[str]:
    """Yield a warning for each name of this machine or its user in a text.

    Raises:
        UserError: if the text contains something that looks like an access token.
    """
    if found := _SECRET.findall(text):
        shown = first_few(f'{secret[:6]}...' for secret in found)
        raise UserError(f'the config contains what looks like an access token ({shown}): remove it')
    names = {}
    with suppress(KeyError, OSError):  # no such user in a container
        names['user'] = getpass.getuser()
    names['host'] = socket.gethostname()
    for what, name in names.items():
        if len(name) > 2 and name.lower() not in _COMMON_USERS:
            word = re.compile(rf'(?<!\w){re.escape(name)}(?!\w)')
            if lines := [line.strip() for line in text.splitlines() if word.search(line)]:
                yield f'the name of this {what}, {name}, is in: {printable(first_few(lines, 2))}'


def _cleaned(value: Any, path: str, changes: list[str]) -> Any:
    if isinstance(value, dict):
        cleaned = {}
        for key, item in value.items():
            place = f'{path}.{key}'.lstrip('.')
            if key in _PER_RUN:
                if item:
                    changes.append(f'{place} was removed')
            elif key == 'init_cfg' and isinstance(item, dict) and 'checkpoint' in item:
                cleaned[key] = None
                changes.append(f'{place} was removed: the published weights replace it')
            else:
                cleaned[key] = _cleaned(item, place, changes)
        return cleaned
    if isinstance(value, list | tuple):
        items = [_cleaned(item, f'{path}[{i}]', changes) for i, item in enumerate(value)]
        return type(value)(items)
    if isinstance(value, str):
        public = _LOGIN.sub('', value)
        whole = _WHOLE.fullmatch(public)
        short = _last_part(whole) if whole else _ABSOLUTE.sub(_last_part, public)
        if short != value:
            changes.append(f'{path} was shortened to {short!r}')
        return short
    return value


def _last_part(path: re.Match) -> str:
    """The last part of an absolute path, with the slash of a folder."""
    text = path[0]
    name = (PureWindowsPath if '\\' in text or text[1:2] == ':' else PurePath)(text).name
    return name + ('/' if name and text.endswith('/') else '')
