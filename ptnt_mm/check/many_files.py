"""Looking at many files: by listing their folders, or with several threads."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from ptnt_mm.progress import watched

_THREADS = 8
"""Decoding lets go of Python's lock, and disks like several readers."""

Item = TypeVar('Item')
Result = TypeVar('Result')


class Folders:
    """The names in folders, remembered: one look at a folder is faster than one at each file."""

    def __init__(self):
        self._names: dict[Path, set[str]] = {}

    def names(self, folder: Path) -> set[str]:
        """What is in a folder; nothing if there is none."""
        if folder not in self._names:
            self._names[folder] = set(os.listdir(folder)) if folder.is_dir() else set()
        return self._names[folder]

    def missing(self, paths: Iterable[Path]) -> list[Path]:
        """The files that are not there."""
        return [path for path in paths if path.name not in self.names(path.parent)]

    def instead_of(self, path: Path) -> str:
        """The name of a file that differs from a missing one in its ending; empty if none is."""
        stem = path.stem.casefold()
        names = [name for name in self.names(path.parent) if Path(name).stem.casefold() == stem]
        return min(names, default='')


def on_threads(
    function: Callable[[Item], Result], items: Sequence[Item], title: str
) -> Iterator[Result]:
    """Call a function for all items, several at a time, with a progress bar on a terminal."""
    pool = ThreadPoolExecutor(_THREADS)
    try:
        yield from watched(pool.map(function, items), len(items), title)
    finally:
        # Ctrl-C does not wait for what is left of a large data set.
        pool.shutdown(cancel_futures=True)


def reason(err: Exception) -> str:
    """Why a file cannot be read; Pillow repeats the path, and may show an object's address."""
    return 'no image' if 'cannot identify' in str(err) else str(err) or type(err).__name__
