"""The work dir of a run: where it is, whether it can be written to, and its lock."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmengine.config import Config

from ptnt_mm.hooks.run_checkpoints import best_checkpoint
from ptnt_mm.utils.atomic_files import check_folder, check_room
from ptnt_mm.utils.errors import UserError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None

PROJECT_WORK_DIR = 'work_dir'
"""The work dir in the folder of a project."""


def find_work_dir(config: Config, asked: Path | str | None = None) -> Path:
    """Path of the work dir: the given one, the config's, or ``work_dirs/<config>``.

    Raises:
        UserError: if neither is set, and the config was not read from a file.
    """
    asked = asked or config.get('work_dir')
    if asked:
        return Path(asked)
    if not config.filename:
        raise UserError(
            'the config was not read from a file, so there is no default work dir: specify one'
        )
    return Path('work_dirs', Path(config.filename).stem)


def create_work_dir(config: Config, asked: Path | str | None) -> Path:
    """Create the work dir of :func:`find_work_dir`, and write it into the config.

    Raises:
        UserError: if it cannot be written to, or cannot be determined.
    """
    work_dir = find_work_dir(config, asked)
    check_folder('work_dir', work_dir)
    try:
        work_dir.mkdir(parents=True, exist_ok=True)
        check_room(work_dir)
    except OSError as error:
        raise UserError(
            f'{work_dir} cannot be written to ({error.strerror}): make room there if it is full, '
            'or choose another `work_dir`'
        ) from error
    config.work_dir = str(work_dir)
    return work_dir


def checkpoint_to_use(config: Config, asked: str | None) -> str:
    """The given checkpoint, or the best one in a config's work dir, or the newest.

    Raises:
        UserError: if none was given and none exists, or if the config has no work dir.
    """
    if asked is not None:
        return asked
    work_dir = find_work_dir(config)
    found = best_checkpoint(work_dir)
    if found is None:
        raise UserError(f'{work_dir} contains no checkpoint: train first, or specify one')
    return str(found)


@contextmanager
def lock_work_dir(work_dir: Path) -> Iterator[None]:
    """Lock a work dir against other processes.

    The system releases the lock when the process ends, however it ends: a file that a killed run
    left does not lock. It is a record lock, which the workers of data loaders do not inherit: they
    outlive a killed run by seconds. Shared file systems propagate it to other machines. On one
    without locks, and on Windows, nothing is locked.

    Raises:
        UserError: if another process trains there, with its machine and process id.
    """
    with (work_dir / '.lock').open('a+') as file:
        try:
            if fcntl is not None:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                file.seek(0)
                raise UserError(
                    f'{work_dir} is in use by {file.read().strip() or "another process"}: wait for '
                    'it, stop it, or choose another `work_dir`'
                ) from error
        file.truncate(0)
        file.write(f'process {os.getpid()} on {socket.gethostname()}\n')
        file.flush()
        yield


def work_dir_of(folder: Path) -> Path:
    """The folder itself, or the work dir in it if it is a project."""
    inside = folder / PROJECT_WORK_DIR
    return inside if inside.is_dir() else folder
