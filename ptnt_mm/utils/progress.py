"""Progress bars and clocks, on standard error and only on a terminal; lines elsewhere."""

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Thread
from typing import TypeVar

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from ptnt_mm.utils.console import is_terminal
from ptnt_mm.utils.text import duration

Item = TypeVar('Item')

_steps: list[tuple[str, Progress]] = []
"""The steps that run now, each inside the one before, by title and display."""


def watched(items: Iterable[Item], total: int, title: str) -> Iterable[Item]:
    """Yield the items and show a progress bar on a terminal; remove it at the end."""
    bar = _on_terminal(transient=True)
    with _step(title, bar):
        yield from bar.track(items, total, description=title)


def new_bar() -> Progress:
    """A context with a progress bar, on a terminal only; its console prints lines above it."""
    return _on_terminal()


@contextmanager
def waiting(title: str) -> Iterator[None]:
    """A context that shows how long it takes; for one long step, which may have other steps."""
    clock = _on_terminal(
        SpinnerColumn(),
        TextColumn('{task.description}'),
        TimeElapsedColumn(),
        transient=True,
        redirect_stdout=is_terminal(sys.stdout),  # what the step prints stands above the clock
    )
    clock.add_task(title, total=None)
    with _step(title, clock):
        yield


def named(title: str) -> AbstractContextManager[None]:
    """A context that shows nothing; :func:`heartbeat` prints the title."""
    return _step(title, Progress(disable=True))


@contextmanager
def heartbeat(title: str, seconds: float = 5.0) -> Iterator[None]:
    """A context that prints the current step and the time so far every few seconds without a bar.

    Args:
        title: That of the time outside all steps.
        seconds: The time between two lines.
    """
    done, started = Event(), time.monotonic()

    def beat() -> None:
        while not done.wait(seconds):
            current, display = _steps[-1] if _steps else (title, None)
            # On a terminal, there is little time outside all steps.
            is_shown = is_terminal(sys.stderr) if display is None else not display.disable
            if not is_shown and sys.stderr is not None:
                took = duration(time.monotonic() - started)
                print(f'{current} ... {took}', file=sys.stderr, flush=True)

    thread = Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _on_terminal(*columns: object, **settings: bool) -> Progress:
    """A display that is shown on a terminal only."""
    hidden = not is_terminal(sys.stderr)
    return Progress(*columns, console=Console(stderr=True), disable=hidden, **settings)


@contextmanager
def _step(title: str, display: Progress) -> Iterator[None]:
    """Show a display in place of that of the step around it."""
    step = title, display
    if _steps:
        _steps[-1][1].stop()
    _steps.append(step)
    try:
        with display:
            yield
    finally:
        _steps.remove(step)
        if _steps:
            _steps[-1][1].start()
