"""Write files atomically, and describe them by checksums."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ptnt_mm.utils.errors import UserError

_PARTIAL = '.partial-'


@contextmanager
def written_whole(file: Path) -> Iterator[Path]:
    """Yield a temporary path that is renamed to ``file`` when the block ends without an error.

    Raises:
        UserError: if the file cannot be written.
    """
    partial = file.with_name(f'.{file.name}{_PARTIAL}{os.getpid()}')
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield partial
            _flush(partial)
            os.replace(partial, file)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f'{file} cannot be written: {error.strerror}') from error


def remove_partials(folder: Path) -> None:
    """Remove the files of processes killed while writing; no other may be writing here."""
    for partial in folder.glob(f'.*{_PARTIAL}*'):
        partial.unlink(missing_ok=True)


def _flush(file: Path) -> None:
    """Wait until a file's bytes are on disk, so that they get there before its new name does."""
    with file.open('rb') as stream:
        os.fsync(stream.fileno())


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
