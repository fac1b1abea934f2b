"""Write files and folders completely or not at all, fit their names, and compute checksums."""

import hashlib
import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ptnt_mm.utils.errors import UserError

_PARTIAL = 'partial'
_LONGEST = 255  # bytes of a name, on nearly all file systems


def write_atomically(file: Path, content: bytes | str) -> None:
    """Write a file atomically, and create its folders.

    Raises:
        UserError: if the file cannot be written, or the text has a name that is not UTF-8; an
            existing file stays unchanged.
    """
    try:
        content = content.encode() if isinstance(content, str) else content
    except UnicodeEncodeError as error:
        near = ascii(content[max(error.start - 30, 0) : error.end + 30])
        raise UserError(
            f'{file} cannot be written: a name is not UTF-8, near {near}: rename the file or folder'
        ) from error
    partial = temporary_name(file, _PARTIAL)
    with _written(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with partial.open('wb') as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(partial, file)
        finally:
            partial.unlink(missing_ok=True)


def remove_partials(folder: Path) -> None:
    """Remove files and folders of processes killed while writing; no other may be writing here."""
    for partial in folder.glob(f'.*.{_PARTIAL}-*'):
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


@contextmanager
def folder_written_atomically(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces ``folder`` when the block ends without an error.

    Raises:
        OSError: if the folder cannot be written.
    """
    building, old = temporary_name(folder, _PARTIAL), temporary_name(folder, 'old')
    # A killed process may have had the same number.
    shutil.rmtree(building, ignore_errors=True)
    try:
        building.mkdir(parents=True)
        yield building
        if folder.exists():
            os.replace(folder, old)
        os.replace(building, folder)
        # Only now, because until the new folder is in place, the old one is the only copy.
        shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        if old.exists() and not folder.exists():
            os.replace(old, folder)
        raise
    finally:
        shutil.rmtree(building, ignore_errors=True)


@contextmanager
def files_written_atomically(*files: Path) -> Iterator[Path]:
    """Yield a temporary folder whose files replace these when the block ends without an error.

    Args:
        files: Files of one folder, in the order in which they are put in place.

    Raises:
        UserError: if the folder cannot be written to.
    """
    # Building may take minutes, so `remove_partials` must not find the folder.
    building = temporary_name(files[-1], 'building')
    shutil.rmtree(building, ignore_errors=True)  # a killed process may have had the same number
    try:
        with _written(files[-1]):
            building.mkdir()
        yield building
        with _written(files[-1]):
            for file in files:
                os.replace(building / file.name, file)
    finally:
        shutil.rmtree(building, ignore_errors=True)


@contextmanager
def _written(file: Path) -> Iterator[None]:
    """Convert an OSError to a UserError."""
    try:
        yield
    except OSError as error:
        raise UserError(f'{file} cannot be written: {error.strerror}') from error


def check_room(folder: Path) -> None:
    """Check that a folder can be written to, and has room for 1 MiB.

    Raises:
        OSError: if not. With a full disk or quota, empty files can still be created.
    """
    probe = temporary_name(folder / 'room', _PARTIAL)
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
        UserError: if the file exists and ``overwrite`` is not set, if it is a folder, or if its
            folder is missing.
    """
    if file.is_dir():
        raise UserError(f'{file} is a folder: choose another name')
    if file.exists() and not overwrite:
        raise UserError(f'{file} exists: choose another name, or pass `overwrite=True`')
    if not file.parent.is_dir():
        raise UserError(f'{file} cannot be written: there is no folder {file.parent}')


def check_folder(argument: str, folder: Path) -> None:
    """Raise a UserError if a file is in the place of the folder that an argument names."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        raise UserError(f'`{argument}={folder}`: {there} is a file, not a folder: choose another')


def fitted_name(name: str) -> str:
    """Cut a file name that is too long for a file system; others stay as they are.

    The result has the beginning of the name, '~' and eight digits that depend on all of it, so that
    names which differ in the part that is cut stay different, and its suffix.
    """
    return name if len(os.fsencode(name)) <= _LONGEST else _cut(name, _LONGEST)


def temporary_name(path: Path, what: str, suffix: str = '') -> Path:
    """Return a hidden path next to a file or folder, unique to this process.

    Args:
        path: The file or folder. Its name may be as long as the system allows.
        what: A word that describes it.
        suffix: The end of the name, for programs that look at it.
    """
    # Some file systems, such as eCryptfs, allow only 143 bytes.
    name = path.name if len(os.fsencode(path.name)) <= 100 else _cut(path.name, 100)
    return path.with_name(f'.{name}.{what}-{os.getpid()}{suffix}')


def _cut(name: str, length: int) -> str:
    """Cut a file name to at most ``length`` bytes, see :func:`fitted_name`."""
    stem, suffix = os.path.splitext(name)
    if len(os.fsencode(suffix)) > 20:  # no suffix, but a dot somewhere in a long name
        stem, suffix = name, ''
    end = f'~{zlib.crc32(os.fsencode(name)):08x}{suffix}'
    start = os.fsencode(stem)[: length - len(os.fsencode(end))]
    # Not through the middle of a character.
    return start.decode(errors='ignore') + end
