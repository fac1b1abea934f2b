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


def require_fresh(work_dir: Path) -> None:
    """Refuse to train over another run's checkpoints.

    Raises:
        UserError: if the folder holds checkpoints.
    """
    checkpoints = sorted(work_dir.glob('*.pth'))
    if checkpoints:
        raise UserError(
            f'{work_dir} holds checkpoints of an earlier run ({checkpoints[-1].name}): continue it '
            'with --resume, throw it away with --overwrite, or choose another --work-dir'
        )


def clear_run(work_dir: Path) -> None:
    """Remove an earlier run's checkpoints and logs, so that nothing of it is taken for the new."""
    for path in (*work_dir.glob('*.pth'), work_dir / 'last_checkpoint'):
        path.unlink(missing_ok=True)
    for folder in work_dir.glob('*'):
        if folder.is_dir() and _TIMESTAMP.fullmatch(folder.name):
            shutil.rmtree(folder)
