"""Find and read the checkpoints that a run wrote into its work dir."""

import logging
import os
import re
from collections.abc import Callable
from pathlib import Path

from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import printable
from ptnt_mm.weights.reader.read import read_checkpoint

_logger = logging.getLogger(__name__)

_LONGEST_PATH = 4096  # bytes, the limit of Linux
_CHECKPOINT = re.compile(r'(epoch|iter|best_.+)_(\d+)\.pth')


def latest_checkpoint(work_dir: Path) -> Path | None:
    """Find the newest checkpoint that can be read; None if there is none.

    The target of MMEngine's pointer comes first, then those with the most steps.
    """
    found = _first_readable(_newest_first(work_dir), _read_all)
    return found and found[0]


def describe_last_checkpoint(work_dir: Path) -> tuple[str, str]:
    """Name the checkpoint to continue from, for the message of a run that stops.

    Returns:
        A sentence without its full stop, and 'continue', or 'start again' without a checkpoint.
    """
    try:
        checkpoint = latest_checkpoint(work_dir)
    except OSError:
        return f'the checkpoints in {work_dir} cannot be read at the moment', 'continue'
    if checkpoint is None:
        return f'there is no complete checkpoint in {work_dir}', 'start again'
    return f'{checkpoint} is the last complete checkpoint', 'continue'


def best_checkpoint(work_dir: Path) -> Path | None:
    """Find the best checkpoint that can be read, otherwise the newest; None if there is none."""
    best = [path for path in _checkpoints_of(work_dir) if path.name.startswith('best_')]
    found = _first_readable([*best[::-1], *_newest_first(work_dir)], _read_all)
    return found and found[0]


def read_latest_checkpoint(work_dir: Path) -> tuple[Path, dict] | tuple[None, None]:
    """Find and read the newest checkpoint that a run can continue from, in the same order.

    Raises:
        UserError: if there are checkpoints, but none of them can be continued from.
    """
    found = _first_readable(_newest_first(work_dir), read_resumable)
    if found is None and (written := _written_by_a_run(work_dir)):
        pointed = printable(_pointed_at(work_dir), 200)
        raise UserError(
            f'{work_dir}: none of its checkpoints can be continued from, such as '
            f'{pointed or written[-1].name}: start over with `overwrite=True`, or pass a different '
            'checkpoint with `resume=PATH`'
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
            f'{path}: contains weights only; start from them with `load_from`, or with '
            "`pretrained` if they are only a backbone's"
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
    newest = [p for p in _checkpoints_of(work_dir) if not p.name.startswith('best_')][::-1]
    # The file is next to the pointer, unless the checkpoint hook has an `out_dir`. The stored path
    # comes second: the run may have been copied or moved, and a different one may be there now.
    pointed = Path(_pointed_at(work_dir))
    found = [path for path in (work_dir / pointed.name, pointed) if os.path.isfile(path)]
    return list(dict.fromkeys([*found[:1], *newest]))


def _checkpoints_of(work_dir: Path) -> list[Path]:
    """The checkpoints in the folder of a run, or in the one in the ``out_dir`` of its hook.

    MMEngine calls the latter like the former; its pointer names it.
    """
    elsewhere = Path(_pointed_at(work_dir)).parent
    is_out_dir = elsewhere.name == work_dir.resolve().name and elsewhere.is_dir()
    return checkpoints_in(work_dir) or (checkpoints_in(elsewhere) if is_out_dir else [])


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
    if written := _written_by_a_run(work_dir):
        raise UserError(
            f'{work_dir} contains checkpoints of an earlier run ({written[-1].name}): continue '
            'it with `resume=auto`, delete it with `overwrite=True`, or choose another `work_dir`'
        )


def _written_by_a_run(work_dir: Path) -> list[Path]:
    # A `filename_tmpl` or an `out_dir` may hide checkpoints, but MMEngine's pointer is always here.
    return [*work_dir.glob('last_checkpoint'), *checkpoints_in(work_dir)]


def checkpoints_in(work_dir: Path) -> list[Path]:
    """The files that MMEngine's checkpoint hook wrote, those with the most steps last."""
    steps = {path: _CHECKPOINT.fullmatch(path.name) for path in work_dir.glob('*.pth')}
    found = [path for path, match in steps.items() if match]
    return sorted(found, key=lambda path: (int(steps[path][2]), path.name))
