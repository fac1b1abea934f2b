"""The folder of a run: what it holds, and starting over in it."""

import re
import shutil
from pathlib import Path

from ptnt_mm.errors import UserError

_TIMESTAMP = re.compile(r'\d{8}_\d{6}')


def latest_checkpoint(work_dir: Path) -> Path | None:
    """The checkpoint that MMEngine's ``--resume`` would take, or None if there is none."""
    pointer = work_dir / 'last_checkpoint'
    if not pointer.is_file():
        return None
    checkpoint = Path(pointer.read_text().strip())
    # The path was written as it was typed: look beside the pointer if it was relative.
    if not checkpoint.is_file():
        checkpoint = work_dir / checkpoint.name
    return checkpoint if checkpoint.is_file() else None


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


def remove(paths: list[Path]) -> None:
    """Remove files and whole folders."""
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _checkpoints(work_dir: Path) -> list[Path]:
    return sorted(work_dir.glob('*.pth'))
