"""Look at many files: by listing their folders, or on several threads."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path, PureWindowsPath
from typing import TypeVar

from ptnt_mm.utils.progress import watched

_THREADS = 8  # decoding releases Python's lock, and disks serve several readers well

Item = TypeVar('Item')
Result = TypeVar('Result')


class Folders:
    """What is in folders, remembered: one look at a folder is faster than one at each file."""

    def __init__(self):
        self.entries = cache(_entries)
        self._real = cache(os.path.realpath)

    def missing(self, paths: Iterable[Path]) -> list[Path]:
        """The paths that lead to no file: nothing, a folder, or a link whose target is gone."""
        entries = ((path, self._entry(path)) for path in paths)
        return [path for path, entry in entries if entry is None or not entry.is_file()]

    def real(self, path: Path) -> str:
        """The one name of a file, whatever spelling or link leads to it."""
        entry = self._entry(path)
        if entry is None or entry.is_symlink():
            return os.path.realpath(path)
        folder, name = os.path.split(path)
        return os.path.join(self._real(folder), name)

    def described(self, path: Path) -> str:
        """A missing file, and what there is of its name."""
        entry = self._entry(path)
        if entry is None:
            return str(path)
        what = 'a link to nothing' if entry.is_symlink() and not path.exists() else 'a folder'
        return f'{path} ({what})'

    def instead_of(self, path: Path) -> str:
        """The name of a file that differs from a missing one in its ending; empty if none is."""
        # Lists written on Windows have backslashes between folders.
        stem = PureWindowsPath(path.name).stem.casefold()
        names = [n for n in self.entries(path.parent) if Path(n).stem.casefold() == stem]
        return min(set(names) - {path.name}, default='')

    def advice(self, missing: Sequence[Path], remove: str) -> str:
        """What to do where files are missing; ``remove`` says how to do without them."""
        there = self.instead_of(missing[0])
        instead = f'there is {there} instead of the first; ' if there else ''
        return f'{instead}copy them there, or {remove}'

    def _entry(self, path: Path) -> os.DirEntry | None:
        folder, name = os.path.split(path)
        return self.entries(folder or os.curdir).get(name)


def _entries(folder: str | Path) -> dict[str, os.DirEntry]:
    """What is in a folder, by name; nothing if there is none."""
    return {one.name: one for one in os.scandir(folder)} if os.path.isdir(folder) else {}


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
