"""The work dir of a run: finding checkpoints, starting over, and locking."""

import errno
import fcntl
import logging
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mmengine.config import Config
from mmengine.dist import master_only
from mmengine.hooks import Hook
from mmengine.runner import Runner

from ptnt_mm.checkpoints.read import read_checkpoint
from ptnt_mm.utils.atomic_files import check_room
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import printable

PROJECT_WORK_DIR = 'work_dir'
"""The work dir in the folder of a project."""

_logger = logging.getLogger(__name__)

_TIMESTAMP = re.compile(r'\d{8}_\d{6}')
_LONGEST_PATH = 4096  # bytes, the limit of Linux
_CHECKPOINT = re.compile(r'(epoch|iter|best_.+)_(\d+)\.pth')


def choose_work_dir(config: Config, asked: Path | None) -> Path:
    """Create the work dir: the given one, the config's, or ``work_dirs/<config>``.

    Raises:
        UserError: if it cannot be written to, or is given nowhere.
    """
    asked = asked or config.get('work_dir')
    if not asked and not config.filename:
        raise UserError(
            'the config was not read from a file, so there is no default work dir: give one'
        )
    work_dir = Path(asked or Path('work_dirs', Path(config.filename).stem))
    if work_dir.is_file():
        raise UserError(f'{work_dir} is a file, not a folder: choose another --work-dir')
    try:
        work_dir.mkdir(parents=True, exist_ok=True)
        check_room(work_dir)
    except OSError as error:
        raise UserError(
            f'{work_dir} cannot be written to ({error.strerror}): make room there if it is full, '
            'or choose another --work-dir'
        ) from error
    config.work_dir = str(work_dir)
    return work_dir


@contextmanager
def locked(work_dir: Path) -> Iterator[None]:
    """Lock a work dir against other processes.

    The system releases the lock when the process ends, however it ends: a file that a killed run
    left does not lock. It is a record lock, which the workers of data loaders do not inherit: they
    outlive a killed run by seconds. Shared file systems propagate it to other machines; one without
    locks does not lock.

    Raises:
        UserError: if another process trains there, with its machine and process id.
    """
    with (work_dir / '.lock').open('a+') as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                file.seek(0)
                raise UserError(
                    f'{work_dir} is in use by {file.read().strip() or "another process"}: wait for '
                    'it, stop it, or choose another --work-dir'
                ) from error
        file.truncate(0)
        file.write(f'process {os.getpid()} on {socket.gethostname()}\n')
        file.flush()
        yield


def latest_checkpoint(work_dir: Path) -> Path | None:
    """Find the newest checkpoint that can be read; None if there is none.

    The target of MMEngine's pointer comes first, then those with the most steps.
    """
    found = _first_readable(_newest_first(work_dir), _read_all)
    return found and found[0]


def best_checkpoint(work_dir: Path) -> Path | None:
    """Find the best checkpoint that can be read, or else the newest; None if there is none."""
    best = [path for path in _checkpoints(work_dir) if path.name.startswith('best_')]
    found = _first_readable([*best[::-1], *_newest_first(work_dir)], _read_all)
    return found and found[0]


def checkpoint_to_use(config: Config, asked: str | None) -> str:
    """The given checkpoint, or the best one in a config's work dir, or the newest.

    Raises:
        UserError: if none was given, and none is there.
    """
    if asked is not None:
        return asked
    work_dir = Path(config.get('work_dir') or Path('work_dirs', Path(config.filename).stem))
    found = best_checkpoint(work_dir)
    if found is None:
        raise UserError(f'{work_dir} contains no checkpoint: train first, or give one')
    return str(found)


def work_dir_of(folder: Path) -> Path:
    """The folder itself, or the work dir in it if it is a project."""
    inside = folder / PROJECT_WORK_DIR
    return inside if inside.is_dir() else folder


def read_latest_checkpoint(work_dir: Path) -> tuple[Path, dict] | tuple[None, None]:
    """Find and read the newest checkpoint that a run can continue from, in the same order.

    Raises:
        UserError: if there are checkpoints, but none of them can be continued from.
    """
    found = _first_readable(_newest_first(work_dir), read_resumable)
    if found is None and _newest_first(work_dir):
        raise UserError(
            f'{work_dir}: none of its checkpoints can be continued from: start over with '
            '--overwrite, or give another checkpoint with --resume PATH'
        )
    return found or (None, None)


def read_resumable(path: str | Path) -> dict:
    """Read a checkpoint that a run can continue from.

    Raises:
        UserError: if it cannot be read, or contains weights only.
    """
    content = read_checkpoint(path)
    # MMEngine saves the best ones without an optimizer, and would continue with a new one.
    if 'meta' not in content or 'optimizer' not in content:
        raise UserError(
            f'{path}: contains weights only; start from them with --load-from, or with '
            "--pretrained if they are only a backbone's"
        )
    return content


def _read_all(path: Path) -> dict:
    """Read and check all bytes of a checkpoint; on the meta device, none are kept."""
    return read_checkpoint(path, 'meta')


def _first_readable(
    checkpoints: list[Path], reader: Callable[[Path], dict]
) -> tuple[Path, dict] | None:
    """Read the first checkpoint that can be read; warn about each one that is skipped."""
    for checkpoint in checkpoints:
        try:
            return checkpoint, reader(checkpoint)
        except Exception as error:  # after any error, an older file may be intact
            reason = str(error).removeprefix(f'{checkpoint}: ')
            _logger.warning(printable(f'{checkpoint} is skipped: {reason}', 1000))
    return None


def _newest_first(work_dir: Path) -> list[Path]:
    newest = [path for path in _checkpoints(work_dir) if not path.name.startswith('best_')][::-1]
    # The path was stored as it was typed: the file is next to the pointer.
    named = work_dir / Path(_pointed_at(work_dir)).name
    pointed = [named] if os.path.isfile(named) else []
    return list(dict.fromkeys([*pointed, *newest]))


def _pointed_at(work_dir: Path) -> str:
    """Read the path in MMEngine's pointer; empty if there is none that can be read."""
    pointer = work_dir / 'last_checkpoint'
    try:
        if not pointer.is_file():
            return ''
        with pointer.open('rb') as file:
            return os.fsdecode(file.read(_LONGEST_PATH)).strip()
    except OSError:
        return ''


def require_fresh(work_dir: Path) -> None:
    """Raise a UserError if the folder contains checkpoints of an earlier run."""
    # A `filename_tmpl` or an `out_dir` may hide them, but MMEngine's pointer is always here.
    checkpoints = [*work_dir.glob('last_checkpoint'), *_checkpoints(work_dir)]
    if checkpoints:
        raise UserError(
            f'{work_dir} contains checkpoints of an earlier run ({checkpoints[-1].name}): continue '
            'it with --resume, delete it with --overwrite, or choose another --work-dir'
        )


class RemoveHook(Hook):
    """Delete an earlier run's checkpoints and logs once everything is built and loaded.

    Args:
        work_dir: The checkpoints and logs that are in it now are deleted when training begins.
        weights: The file or address that training starts from, if any.

    Raises:
        UserError: if the weights would be deleted.
    """

    def __init__(self, work_dir: Path, weights: str | None):
        folders = (path for path in work_dir.glob('*') if path.is_dir())
        logs = [path for path in folders if _TIMESTAMP.fullmatch(path.name)]
        self._paths = [*_checkpoints(work_dir), *work_dir.glob('last_checkpoint'), *logs]
        if weights is not None and Path(weights).resolve() in [p.resolve() for p in self._paths]:
            raise UserError(
                f'--overwrite would remove {weights}, which training starts from: move it'
            )

    @master_only
    def before_train(self, runner: Runner) -> None:
        """Delete the files and folders."""
        for path in self._paths:
            is_folder = path.is_dir() and not path.is_symlink()
            shutil.rmtree(path) if is_folder else path.unlink(missing_ok=True)


def _checkpoints(work_dir: Path) -> list[Path]:
    """The files that MMEngine's checkpoint hook wrote, those with the most steps last."""
    steps = {path: _CHECKPOINT.fullmatch(path.name) for path in work_dir.glob('*.pth')}
    found = [path for path, match in steps.items() if match]
    return sorted(found, key=lambda path: (int(steps[path][2]), path.name))
