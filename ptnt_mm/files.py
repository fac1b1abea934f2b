"""Writing files so that nobody ever finds half of one."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ptnt_mm.errors import UserError

_PARTIAL = '.partial-'


@contextmanager
def written_whole(file: Path) -> Iterator[Path]:
    """Give a temporary name beside a file; it takes the file's name when all is written.

    Raises:
        UserError: if the system refuses to write.
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
    """Remove what a process that was killed while writing left; nobody else may be writing."""
    for partial in folder.glob(f'.*{_PARTIAL}*'):
        partial.unlink(missing_ok=True)


def _flush(file: Path) -> None:
    """Wait until a file's bytes are on the disk: a name must not get there before them."""
    with file.open('rb') as stream:
        os.fsync(stream.fileno())


def sha256(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with file.open('rb') as stream:
        return hashlib.file_digest(stream, 'sha256').hexdigest()


def check_new(file: Path, overwrite: bool) -> None:
    """Find out before the work whether its result may take this name.

    Raises:
        UserError: if the file exists and may not be replaced, or its folder does not exist.
    """
    if file.exists() and not overwrite:
        raise UserError(f'{file} exists: choose another name, or give --overwrite')
    if not file.parent.is_dir():
        raise UserError(f'{file} cannot be written: there is no folder {file.parent}')
