"""The folder of a run: what it holds, and starting over in it."""

import logging
import re
import shutil
import zipfile
import zlib
from pathlib import Path

from mmengine.dist import master_only
from mmengine.hooks import Hook
from mmengine.runner import Runner

from ptnt_mm.utils.errors import UserError

_logger = logging.getLogger(__name__)

_TIMESTAMP = re.compile(r'\d{8}_\d{6}')
_CHECKPOINT = re.compile(r'(epoch|iter|best_.+)_(\d+)\.pth')


def make_work_dir(work_dir: Path) -> None:
    """Make the folder of a run.

    Raises:
        UserError: if it cannot be made or written to.
    """
    try:
        work_dir.mkdir(parents=True, exist_ok=True)
        probe = work_dir / '.writable'
        probe.touch()
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f'{work_dir} cannot be written to ({error.strerror}): choose another --work-dir'
        ) from error


def latest_checkpoint(work_dir: Path) -> Path | None:
    """The newest checkpoint that is whole, or None if there is none; warns of those that are not.

    The one that MMEngine's pointer names comes first, then those of the most steps.
    """
    steps = [path for path in _checkpoints(work_dir) if not path.name.startswith('best_')][::-1]
    pointer = work_dir / 'last_checkpoint'
    if pointer.is_file():
        # The path was written as it was typed: the file lies beside the pointer.
        named = work_dir / Path(pointer.read_text().strip()).name
        steps = [named, *steps] if named.is_file() else steps
    for checkpoint in steps:
        if _is_whole(checkpoint):
            return checkpoint
        _logger.warning('%s is damaged and left out: the next older one is taken', checkpoint)
    return None


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
    """Refuse to train over another run's checkpoints.

    Raises:
        UserError: if the folder holds checkpoints.
    """
    checkpoints = _checkpoints(work_dir)
    if checkpoints:
        raise UserError(
            f'{work_dir} holds checkpoints of an earlier run ({checkpoints[-1].name}): continue it '
            'with --resume, throw it away with --overwrite, or choose another --work-dir'
        )


class RemoveHook(Hook):
    """Throw files and folders away when training begins: everything was built and loaded by then.

    Args:
        paths: What to remove.
    """

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
