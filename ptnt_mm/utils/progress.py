"""A progress bar for the terminal."""

import sys
from collections.abc import Iterable
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar('Item')


def watched(items: Iterable[Item], total: int, title: str) -> Iterable[Item]:
    """Yield the items and show a progress bar on a terminal; remove it at the end."""
    return track(
        items,
        description=title,
        total=total,
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )
