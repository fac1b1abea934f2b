"""Find the user's own code in a traceback."""

import os
import sysconfig
import traceback
from pathlib import Path

_LIBRARIES = tuple(
    f'{folder}{os.sep}'
    for folder in (
        Path(__file__).parents[1],
        *map(sysconfig.get_path, ('stdlib', 'purelib', 'platlib')),
    )
)


def place_in_own_code(error: BaseException) -> str:
    """The last line of the user's own code in a traceback, as ' (/me/head.py, line 9)', or ''."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith((*_LIBRARIES, '<'))]
    return f' ({own[-1].filename}, line {own[-1].lineno})' if own else ''
