"""Writing folders so that nobody ever finds half of one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def folder_written_whole(folder: Path) -> Iterator[Path]:
    """Give a new folder beside one; it takes that one's place when all is written.

    Raises:
        OSError: if the system refuses to write.
    """
    building = folder.parent / f'.{folder.name}.partial-{os.getpid()}'
    try:
        building.mkdir(parents=True)
        yield building
        _replace(building, folder)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _replace(new: Path, folder: Path) -> None:
    """Put the finished folder in its place; the old one goes only after that worked."""
    old = folder.parent / f'.{folder.name}.old-{os.getpid()}'
    if folder.exists():
        os.replace(folder, old)
    try:
        os.replace(new, folder)
    except OSError:
        if old.exists():
            os.replace(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
