"""Write files and folders whole or not at all, and describe files by checksums."""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ptnt_mm.utils.errors import UserError

_PARTIAL = 'partial'


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

    Raises:
        OSError: if the folder cannot be written.
    """
    building, old = _beside(folder, _PARTIAL), _beside(folder, 'old')
    # A killed process may have had the same number.
    shutil.rmtree(building, ignore_errors=True)
    try:
        building.mkdir(parents=True)
        yield building
        if folder.exists():
            os.replace(folder, old)
        os.replace(building, folder)
        # Only now: until the new folder is in place, the old one is all there is.
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        if old.exists() and not folder.exists():
            os.replace(old, folder)
        raise
    finally:
        shutil.rmtree(building, ignore_errors=True)


def check_room(folder: Path) -> None:
    """Check that a folder can be written to, and has room for 1 MiB.

    Raises:
        OSError: if not. A full disk or a used-up quota still lets empty files be made.
    """
    probe = _beside(folder / 'room', _PARTIAL)
    try:
        with probe.open('wb') as stream:
            stream.write(bytes(2**20))
            stream.flush()
            os.fsync(stream.fileno())
    finally:
        probe.unlink(missing_ok=True)


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
