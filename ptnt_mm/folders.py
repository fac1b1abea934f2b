"""Writing folders so that nobody ever finds half of one."""

import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PARTIAL = 'partial'
_OLD = 'old'


@contextmanager
def folder_written_whole(folder: Path) -> Iterator[Path]:
    """Give a new folder beside one; it takes that one's place when all is written.

    What killed processes of this machine left of the same folder is removed.

    Raises:
        OSError: if the system refuses to write.
    """
    _remove_left(folder, _PARTIAL)
    building = _beside(folder, _PARTIAL)
    try:
        building.mkdir(parents=True)
        yield building
        _replace(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    # Not before: one of them may be all that there is.
    _remove_left(folder, _OLD)


def _beside(folder: Path, what: str) -> Path:
    """A hidden name for this process's own."""
    return folder.parent / f'.{folder.name}.{what}-{os.getpid()}'


def _replace(new: Path, folder: Path) -> None:
    """Put the finished folder in its place; the old one goes only after that worked."""
    old = _beside(folder, _OLD)
    try:
        if folder.exists():
            os.replace(folder, old)
        os.replace(new, folder)
    except BaseException:
        if old.exists() and not folder.exists():
            os.replace(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _remove_left(folder: Path, what: str) -> None:
    """Remove what processes that do not run any more left beside a folder."""
    for left in folder.parent.glob(f'.{glob.escape(folder.name)}.{what}-*'):
        number = left.name.rpartition('-')[2]
        if number.isdecimal() and not _runs(int(number)):
            shutil.rmtree(left, ignore_errors=True)


def _runs(process: int) -> bool:
    """Whether there is a process of this number, whosever it is."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        # It is another user's, or no number of a process.
        return True
    return True
