"""Explain in one line why a run or an evaluation failed, what is safe, and how to continue."""

import errno
import logging
import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmengine.dist import get_world_size
from mmengine.runner import EpochBasedTrainLoop, ValLoop

from ptnt_mm.engine.run_checkpoints import describe_last_checkpoint
from ptnt_mm.explain.build_errors import explain_refusal
from ptnt_mm.explain.frames import place_in_own_code
from ptnt_mm.utils.atomic_files import DISK_ERRORS
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.terminal import TRACEBACK
from ptnt_mm.utils.text import one_line

_DEAD_WORKER = (
    'a worker of the data loader was killed: most often memory ran out, or /dev/shm is too small '
    'for the images in transfer (docker run --shm-size=8g). Fewer workers need less of both: '
    '--cfg-options train_dataloader.num_workers=1. Continue with --resume'
)
_NO_GPU_MEMORY = (
    'the GPU is out of memory. Try, in this order: mixed precision (--amp), '
    '--cfg-options model.backbone.with_cp=True, then train_dataloader.batch_size=1 with '
    'optim_wrapper.accumulative_counts=2; see docs/performance.md for more. Continue with --resume'
)
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOTCONN)
"""Errors for files that have disappeared, and storage that does not respond."""

_WHY = re.compile(r"\[Errno (\d+)\] ([^:\n]+?)(?:: '(.+)')?\s*$")
_DATA_IS_GONE = (
    '{}. If data was moved, or its storage is no longer connected, restore it and continue '
    'with --resume; the log shows where it was read'
)
_OTHER_PROCESS = (
    'another process of this run stopped, so this one does too; the first error is in its '
    'output. Continue with --resume'
)


@contextmanager
def failures_explained(logger: logging.Logger, work_dir: Path) -> Iterator[None]:
    """Log the traceback of an error that stops a run, and explain it in one line if possible.

    Args:
        logger: Logger for the traceback.
        work_dir: Work dir of the run.

    Raises:
        UserError: in place of a failure that a user can act on.
    """
    try:
        yield
    except Exception as error:
        logger.error(f'{TRACEBACK}\n{traceback.format_exc()}')
        explanation = explain_failure(error, work_dir)
        if explanation is None:
            raise
        raise UserError(explanation) from error


@contextmanager
def failed_test_explained(logger: logging.Logger) -> Iterator[None]:
    """Log the traceback of an error that stops a test, and raise a UserError with one line."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # data sets, models and metrics may raise anything
        logger.error(f'{TRACEBACK}\n{traceback.format_exc()}')
        reason = explain_refusal(error) or one_line(error, named=True)
        raise UserError(
            f'the evaluation failed: {reason}{place_in_own_code(error)}; see the log file'
        ) from error


def explain_failure(error: BaseException, work_dir: Path) -> str | None:
    """Explain in one line a failure that is not a bug in the program; None for all others."""
    text = str(error)
    if isinstance(error, UserError) and text.startswith('Caught UserError in DataLoader worker'):
        # torch makes the worker's traceback the message.
        return text.rpartition('UserError: ')[2].strip()
    if (refused := _refused_by_the_system(error)) is not None:
        return _explain_storage(*refused, error, work_dir)
    if re.search(
        r'DataLoader worker \(pid.*(killed|exited)|/dev/shm|</torch_|bus error', text, re.I
    ):
        return _DEAD_WORKER
    if type(error).__name__ == 'OutOfMemoryError' or 'CUDA out of memory' in text:
        return _NO_GPU_MEMORY
    if get_world_size() > 1 and re.search(
        r'Connection (closed by peer|reset)|gloo.*timeout', text, re.I
    ):
        return _OTHER_PROCESS
    # Hooks and initialisers build things too.
    return explain_refusal(error) or _explain_evaluation(error)


def _explain_evaluation(error: BaseException) -> str | None:
    """Explain a failed evaluation during training: what is kept, and how to continue."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if frame.f_code is ValLoop.run.__code__:
            runner = frame.f_locals['self'].runner
            by_epoch = isinstance(runner.train_loop, EpochBasedTrainLoop)
            when = f'epoch {runner.epoch}' if by_epoch else f'iteration {runner.iter}'
            kept, again = describe_last_checkpoint(Path(runner.work_dir))
            return (
                f'the evaluation after {when} failed: {one_line(error, named=True)}; see the log '
                f'file; {kept}. Correct the config, and {again} with --resume'
            )
    return None


def _refused_by_the_system(error: BaseException) -> tuple[int, str, str] | None:
    """Find the error number, its description and the path, if there is one."""
    # UserErrors of atomic writes have the OSError as their cause.
    cause = error.__cause__ if isinstance(error, UserError) else error
    if not isinstance(cause, OSError):
        return None
    if cause.errno is not None:
        return cause.errno, cause.strerror or '', str(cause.filename or '')
    # For an error in a worker, torch keeps only the text.
    found = _WHY.search(str(cause))
    return found and (int(found[1]), found[2], found[3] or '')


def _explain_storage(
    number: int, reason: str, path: str, error: BaseException, work_dir: Path
) -> str | None:
    """Explain which file cannot be written or is gone, and name the checkpoint to continue from."""
    named = f'{reason}: {path!r}' if path else reason
    if isinstance(error, UserError):
        named = str(error)
    if number in DISK_ERRORS:
        what, remedy = DISK_ERRORS[number]
        kept, again = describe_last_checkpoint(work_dir)
        return (
            f'{what} ({named}); {kept}. First {remedy}, or move the work dir to another disk; then '
            f'{again} with --resume'
        )
    if number not in _GONE:
        return None
    if not Path(path).is_relative_to(work_dir):
        # A UserError already contains advice.
        return None if isinstance(error, UserError) else _DATA_IS_GONE.format(named)
    kept, again = describe_last_checkpoint(work_dir)
    return (
        f'the work dir was removed or changed while the run wrote to it ({named}); {kept}. '
        'Restore what was moved, connect its storage if it is disconnected, and '
        f'{again} with --resume'
    )
