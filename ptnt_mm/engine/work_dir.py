"""The folder of a run: what it holds, starting over in it, and keeping others out."""

import errno
import fcntl
import logging
import os
import re
import shutil
import socket
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmengine.config import Config
from mmengine.dist import master_only
from mmengine.hooks import Hook
from mmengine.runner import Runner

from ptnt_mm.checkpoints.errors import CheckpointError
from ptnt_mm.checkpoints.read import read
from ptnt_mm.utils.atomic_files import check_room
from ptnt_mm.utils.errors import UserError

_logger = logging.getLogger(__name__)

_TIMESTAMP = re.compile(r'\d{8}_\d{6}')
_DAMAGED = '%s is damaged and left out: the next older one is taken'
_CHECKPOINT = re.compile(r'(epoch|iter|best_.+)_(\d+)\.pth')


def choose_work_dir(config: Config, asked: Path | None) -> Path:
    """The work dir, made: as asked, or as the config says, or ``work_dirs/<config>``.

    Raises:
        UserError: if it cannot be written to, or nothing names it.
    """
    asked = asked or config.get('work_dir')
    if not asked and not config.filename:
        raise UserError('the config was read from no file that could name the work dir: give one')
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
    """Keep others out of a work dir.

    The system gives the lock back when the process ends, however it ends: a file that a killed run
    left keeps nobody out. A record lock, which the workers of data loaders do not inherit: they
    outlive a killed training by seconds. Shared file systems carry it to other machines; where one
    knows no locks, nobody is kept out.

    Raises:
        UserError: if another process trains there; names its machine and process id.
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
    """The newest checkpoint that is whole, or None if there is none; warns of those that are not.

    The one that MMEngine's pointer names comes first, then those of the most steps.
    """
    for checkpoint in _newest_first(work_dir):
        if _is_whole(checkpoint):
            return checkpoint
        _logger.warning(_DAMAGED, checkpoint)
    return None


def read_latest_checkpoint(work_dir: Path) -> tuple[Path, dict] | tuple[None, None]:
    """Find the same as :func:`latest_checkpoint`, and read it, once.

    Raises:
        CheckpointError: if it is whole, but refused.
    """
    for checkpoint in _newest_first(work_dir):
        try:
            return checkpoint, read(checkpoint)
        except CheckpointError:
            if _is_whole(checkpoint):
                raise
            _logger.warning(_DAMAGED, checkpoint)
    return None, None


def _newest_first(work_dir: Path) -> list[Path]:
    newest = [path for path in _checkpoints(work_dir) if not path.name.startswith('best_')][::-1]
    pointer = work_dir / 'last_checkpoint'
    if pointer.is_file():
        # The path was written as it was typed: the file lies beside the pointer.
        named = work_dir / Path(pointer.read_text().strip()).name
        newest = [named, *newest] if named.is_file() else newest
    return newest


def _is_whole(checkpoint: Path) -> bool:
    """Whether every byte of what torch.save wrote is there and as it was."""
    try:
        with zipfile.ZipFile(checkpoint) as archive:
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile, zlib.error):
        return False


def earlier_run(work_dir: Path) -> list[Path]:
    """An earlier run's checkpoints and logs."""
    folders = (path for path in work_dir.glob('*') if path.is_dir())
    logs = [path for path in folders if _TIMESTAMP.fullmatch(path.name)]
    return [*_checkpoints(work_dir), *work_dir.glob('last_checkpoint'), *logs]


def require_fresh(work_dir: Path) -> None:
    """Raise a UserError if the folder holds checkpoints of an earlier run."""
    # A `filename_tmpl` or an `out_dir` may hide them, but MMEngine's pointer is always here.
    checkpoints = [*work_dir.glob('last_checkpoint'), *_checkpoints(work_dir)]
    if checkpoints:
        raise UserError(
            f'{work_dir} holds checkpoints of an earlier run ({checkpoints[-1].name}): continue it '
            'with --resume, throw it away with --overwrite, or choose another --work-dir'
        )


class RemoveHook(Hook):
    """Throw files and folders away when training begins: all was built and loaded by then."""

    def __init__(self, paths: list[Path]):
        self.paths = paths

    @master_only
    def before_train(self, runner: Runner) -> None:
        """Remove them."""
        for path in self.paths:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _checkpoints(work_dir: Path) -> list[Path]:
    """The files that MMEngine's checkpoint hook wrote, those of the most steps last."""
    steps = {path: _CHECKPOINT.fullmatch(path.name) for path in work_dir.glob('*.pth')}
    found = [path for path, match in steps.items() if match]
    return sorted(found, key=lambda path: (int(steps[path][2]), path.name))
