"""Many files and other items: what exists, by listing folders; in groups; on several threads."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path, PureWindowsPath
from typing import TypeVar

from ptnt_mm.utils.progress import watched

_THREADS = 8  # decoding releases Python's lock, and disks serve several readers well

Item = TypeVar('Item')
Key = TypeVar('Key')
Result = TypeVar('Result')


def grouped(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """The items of each key, in their order."""
    groups = defaultdict(list)
    for key, item in pairs:
        groups[key].append(item)
    return dict(groups)


class Folders:
    """Cached listings of folders: listing a folder is faster than checking each file."""

    def __init__(self):
        self.entries = cache(_entries)
        self._real = cache(os.path.realpath)

    def missing(self, paths: Iterable[Path]) -> list[Path]:
        """The paths without a file: missing, a folder, or a broken link."""
        entries = ((path, self._entry(path)) for path in paths)
        return [path for path, entry in entries if entry is None or not entry.is_file()]

    def real(self, path: Path) -> str:
        """The canonical path of a file, the same for all spellings and links."""
        entry = self._entry(path)
        if entry is None or entry.is_symlink():
            return os.path.realpath(path)
        folder, name = os.path.split(path)
        return os.path.join(self._real(folder), name)

    def described(self, path: Path) -> str:
        """Describe a missing file, and what exists under its name."""
        entry = self._entry(path)
        if entry is None:
            return str(path)
        what = 'a broken link' if entry.is_symlink() and not path.exists() else 'a folder'
        return f'{path} ({what})'

    def instead_of(self, path: Path) -> str:
        """An existing file that differs from a missing one in its ending; empty without one."""
        # Lists written on Windows have backslashes between folders.
        stem = PureWindowsPath(path.name).stem.casefold()
        names = [n for n in self.entries(path.parent) if Path(n).stem.casefold() == stem]
        return min(set(names) - {path.name}, default='')

    def advice(self, missing: Sequence[Path], remove: str) -> str:
        """Advice about missing files; ``remove`` describes how to do without them."""
        there = self.instead_of(missing[0])
        instead = f'there is {there} instead of the first; ' if there else ''
        return f'{instead}copy them there, or {remove}'

    def _entry(self, path: Path) -> os.DirEntry | None:
        folder, name = os.path.split(path)
        return self.entries(folder or os.curdir).get(name)


def _entries(folder: str | Path) -> dict[str, os.DirEntry]:
    """The entries of a folder by name; empty if there is no folder."""
    return {entry.name: entry for entry in os.scandir(folder)} if os.path.isdir(folder) else {}


def on_threads(
    function: Callable[[Item], Result], items: Sequence[Item], title: str
) -> Iterator[Result]:
    """Call a function for all items on several threads, with a progress bar on a terminal."""
    pool = ThreadPoolExecutor(_THREADS)
    try:
        yield from watched(pool.map(function, items), len(items), title)
    finally:
        # Ctrl-C does not wait for the rest of a large data set.
        pool.shutdown(cancel_futures=True)
