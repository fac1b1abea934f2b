"""Write files and folders whole or not at all, and describe files by checksums."""

import glob
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ptnt_mm.utils.errors import UserError

_PARTIAL, _OLD = 'partial', 'old'


def write_whole(file: Path, content: bytes | str) -> None:
    """Write a file, with its folders: its name is given to it when all bytes are on the disk.

    Raises:
        UserError: if the file cannot be written; what had the name before is left as it was.
    """
    partial = _beside(file, _PARTIAL)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open('wb') as stream:
                stream.write(content.encode() if isinstance(content, str) else content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(partial, file)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f'{file} cannot be written: {error.strerror}') from error


def remove_partials(folder: Path) -> None:
    """Remove the files of processes killed while writing; no other may be writing here."""
    for partial in folder.glob(f'.*.{_PARTIAL}-*'):
        partial.unlink(missing_ok=True)


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


def sha256(file: Path) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    with file.open('rb') as stream:
        return hashlib.file_digest(stream, 'sha256').hexdigest()


def check_new(file: Path, overwrite: bool) -> None:
    """Check before the work starts that its result may be written to ``file``.

    Raises:
        UserError: if the file exists and ``overwrite`` is not set, or if its folder is missing.
    """
    if file.exists() and not overwrite:
        raise UserError(f'{file} exists: choose another name, or give --overwrite')
    if not file.parent.is_dir():
        raise UserError(f'{file} cannot be written: there is no folder {file.parent}')


def _beside(path: Path, what: str) -> Path:
    """Return a hidden path beside a file or folder, unique to this process."""
    return path.with_name(f'.{path.name}.{what}-{os.getpid()}')


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
