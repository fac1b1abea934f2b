"""Progress bars and clocks, on standard error and only on a terminal."""

import sys
from collections.abc import Iterable
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, track

from ptnt_mm.utils.console import is_terminal

Item = TypeVar('Item')


def watched(items: Iterable[Item], total: int, title: str) -> Iterable[Item]:
    """Yield the items and show a progress bar on a terminal; remove it at the end."""
    return track(
        items,
        description=title,
        total=total,
        console=Console(stderr=True),
        disable=not is_terminal(sys.stderr),
        transient=True,
    )


def new_bar() -> Progress:
    """A context with a progress bar, on a terminal only; its console prints lines above it."""
    return Progress(console=Console(stderr=True), disable=not is_terminal(sys.stderr))


def waiting(title: str) -> Progress:
    """A context that shows how long it takes; for one long step."""
    clock = Progress(
        SpinnerColumn(),
        TextColumn('{task.description}'),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        disable=not is_terminal(sys.stderr),
        transient=True,
        redirect_stdout=is_terminal(sys.stdout),  # what the step prints stands above the clock
    )
    clock.add_task(title, total=None)
    return clock
