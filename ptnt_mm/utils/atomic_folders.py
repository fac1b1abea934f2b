"""Write folders atomically: complete or not at all."""

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
    """Yield a temporary folder that replaces ``folder`` when the block ends without an error.

    Also removes what earlier processes of this machine left behind when they were killed while
    writing the same folder.

    Raises:
        OSError: if the folder cannot be written.
    """
    _remove_left(folder, _PARTIAL)
    building = _beside(folder, _PARTIAL)
    try:
        building.mkdir(parents=True)
        yield building
        _replace(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    # Only now: until the new folder is in place, an old copy may be the only one.
    _remove_left(folder, _OLD)


def _beside(folder: Path, what: str) -> Path:
    """Return a hidden path beside the folder, unique to this process."""
    return folder.parent / f'.{folder.name}.{what}-{os.getpid()}'


def _replace(new: Path, folder: Path) -> None:
    """Move the finished folder into place, and only then remove the old one."""
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
    """Remove what processes that have ended left beside a folder."""
    for left in folder.parent.glob(f'.{glob.escape(folder.name)}.{what}-*'):
        number = left.name.rpartition('-')[2]
        if number.isdecimal() and not _runs(int(number)):
            shutil.rmtree(left, ignore_errors=True)


def _runs(process: int) -> bool:
    """Return True if a process with this number exists, also if another user owns it."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        # Owned by another user, or not a valid process number: keep the folder.
        return True
    return True
