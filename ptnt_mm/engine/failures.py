"""What a user can do about a training or an evaluation that fails."""

import errno
import logging
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmengine.dist import get_world_size
from mmengine.runner import EpochBasedTrainLoop, ValLoop

from ptnt_mm.engine.config import explain_build_error, is_about_the_config
from ptnt_mm.engine.data_files import HOW_TO_GET_DATA
from ptnt_mm.engine.runner import TRACEBACK
from ptnt_mm.engine.work_dir import latest_checkpoint
from ptnt_mm.utils.errors import UserError

_NO_SPACE = (
    'the disk is full. Earlier checkpoints are still whole; make room, or move --work-dir, '
    'and continue with --resume'
)
_DEAD_WORKER = (
    'a worker of the data loader was killed: most often memory ran out, or /dev/shm is too small '
    'for the images on their way (docker run --shm-size=8g). Fewer workers need less of both: '
    '--cfg-options train_dataloader.num_workers=1. Continue with --resume'
)
_NO_GPU_MEMORY = (
    'the GPU has no memory left. In this order: mixed precision (--amp), '
    '--cfg-options model.backbone.with_cp=True, then train_dataloader.batch_size=1 with '
    'optim_wrapper.accumulative_counts=2; docs/training.md has more. Continue with --resume'
)
# Of files that are not there any more, and of storage that does not answer.
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOTCONN)
_WHY = re.compile(r"\[Errno (\d+)\] ([^:\n]+)(: '.+')?\s*$")
_IS_GONE = (
    '{0}. If data was moved, or its storage is not connected any more, bring it back and continue '
    'with --resume; the log says where it was read'
)
_OTHER_PROCESS = (
    'another process of this training stopped, so this one does too; the first error is in its '
    'output. Continue with --resume'
)

_BUILT_LATE = {
    'build_dataloader': 'the data loader',
    'build_optim_wrapper': 'the optimizer',
    'build_param_scheduler': 'the schedule of the learning rate',
}
"""What methods of MMEngine's runner build."""


@contextmanager
def late_building() -> Iterator[None]:
    """Raise a UserError for what data loaders, optimizers and schedules, built late, refuse.

    And for files that data sets do not find.
    """
    try:
        yield
    except (AssertionError, KeyError, OSError, TypeError, ValueError) as error:
        if (explanation := _explain_late_building(error)) is not None:
            raise UserError(explanation) from error
        raise


@contextmanager
def failures_explained(logger: logging.Logger) -> Iterator[None]:
    """Write the traceback of what stops a training into its log file, and say what to do about it.

    Raises:
        UserError: in place of a failure that a user can do something about.
    """
    try:
        yield
    except Exception as error:
        logger.error(f'{TRACEBACK}\n{traceback.format_exc()}')
        explanation = explain_failure(error)
        if explanation is None:
            raise
        raise UserError(explanation) from error


def explain_failure(error: BaseException) -> str | None:
    """One line for a failure that is not the program's, or None for all others."""
    text = str(error)
    if isinstance(error, UserError) and text.startswith('Caught UserError in DataLoader worker'):
        # torch makes the worker's traceback the message.
        return text.rpartition('UserError: ')[2].strip()
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _NO_SPACE
    # Of an error in a worker, torch keeps the text alone.
    why = _WHY.search(text) if isinstance(error, OSError) else None
    if why is not None and int(why[1]) in _GONE:
        return _IS_GONE.format(f'{why[2]}{why[3] or ""}')
    if re.search(r'DataLoader worker \(pid.*(killed|exited)|/dev/shm|bus error', text, re.I):
        return _DEAD_WORKER
    if type(error).__name__ == 'OutOfMemoryError' or 'CUDA out of memory' in text:
        return _NO_GPU_MEMORY
    if get_world_size() > 1 and re.search(
        r'Connection (closed|reset) by peer|Connection reset|gloo.*timeout', text, re.I
    ):
        return _OTHER_PROCESS
    return _explain_evaluation(error)


def _explain_evaluation(error: BaseException) -> str | None:
    """One line for an evaluation that fails during training: what is kept, and how to go on."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is ValLoop.run.__code__:
            runner = frame.f_locals['self'].runner
            by_epoch = isinstance(runner.train_loop, EpochBasedTrainLoop)
            when = f'epoch {runner.epoch}' if by_epoch else f'iteration {runner.iter}'
            checkpoint = latest_checkpoint(Path(runner.work_dir))
            kept = f'{checkpoint} is kept' if checkpoint else 'no checkpoint was written yet'
            go_on = 'continue with --resume' if checkpoint else 'start again'
            text = str(error).strip().partition('\n')[0]
            reason = f'{type(error).__name__}: {text}' if text else type(error).__name__
            return (
                f'the evaluation after {when} failed: {reason}; the log '
                f'file has more. {kept}: correct the config, and {go_on}'
            )
    return None


def _explain_late_building(error: Exception) -> str | None:
    """One line for what is refused, is not there, or cannot be fetched; None for other failures."""
    if is_about_the_config(error):
        return explain_build_error(error)
    calls = {
        frame.f_code.co_name: frame.f_locals for frame, _ in traceback.walk_tb(error.__traceback__)
    }
    # With this function, mmpretrain's data sets fetch their files.
    if isinstance(error, OSError) and (given := calls.get('download_and_extract_archive')):
        return (
            f'{given["url"]} cannot be fetched: {error}. Fetch it on another machine, and put it, '
            f'still packed, into the folder {given["download_root"]}'
        )
    # Data sets read their lists when they are built. Other files may be missing later.
    if isinstance(error, FileNotFoundError) and 'build_dataloader' in calls:
        return f'{error.filename} is not there. {HOW_TO_GET_DATA}'
    built = next((what for call, what in _BUILT_LATE.items() if call in calls), None)
    if built is not None and not isinstance(error, OSError | KeyError):
        return f'{built} cannot be built: {error}'
    return None
