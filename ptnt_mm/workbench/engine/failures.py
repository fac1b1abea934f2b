"""Explain in one line why a run or an evaluation failed, what is safe, and how to continue."""

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmengine.runner import EpochBasedTrainLoop

from ptnt_mm.hooks.run_checkpoints import describe_last_checkpoint
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.frames import evaluating_runner, one_line, place_in_own_code
from ptnt_mm.utils.terminal import TRACEBACK
from ptnt_mm.workbench.config.causes import Kind, explain

_OF_A_RUN = (Kind.DISK, Kind.STORAGE, Kind.PROCESS, Kind.CONFIG)


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
    except Exception as error:  # data sets, models and metrics may raise anything
        found = explain(error, *_OF_A_RUN)
        if isinstance(error, UserError) and (found is None or found.kind is Kind.STORAGE):
            raise  # it already contains advice
        logger.error(f'{TRACEBACK}\n{traceback.format_exc()}')
        reason = found or one_line(error, named=True)
        raise UserError(
            f'the evaluation failed: {reason}{place_in_own_code(error)}; see the log file'
        ) from error


def explain_failure(error: BaseException, work_dir: Path) -> str | None:
    """Explain in one line a failure that is not a bug in the program; None for all others."""
    found = explain(error, *_OF_A_RUN)
    if found is None:
        return _explain_evaluation(error)
    if found.kind is Kind.CONFIG:
        return str(found)
    if found.kind is Kind.PROCESS:
        return f'{found}. Continue with `resume`'
    in_work_dir = found.file and Path(found.file).is_relative_to(work_dir)
    if found.kind is Kind.STORAGE and not in_work_dir:
        # A UserError already contains advice.
        is_complete = isinstance(error, UserError)
        then = 'continue with `resume`; the log shows where it was read'
        return None if is_complete else f'{found} and {then}'
    kept, again = describe_last_checkpoint(work_dir)
    if found.kind is Kind.DISK:
        return (
            f'{found.what}; {kept}. {found.advice}, or move the work dir to another disk; then '
            f'{again} with `resume`'
        )
    return (
        f'the work dir was removed or changed while the run wrote to it ({found.what}); {kept}. '
        'Restore what was moved, connect its storage if it is disconnected, and '
        f'{again} with `resume`'
    )


def _explain_evaluation(error: BaseException) -> str | None:
    """Explain a failed evaluation during training: what is kept, and how to continue."""
    if (runner := evaluating_runner(error)) is None:
        return None
    by_epoch = isinstance(runner.train_loop, EpochBasedTrainLoop)
    when = f'epoch {runner.epoch}' if by_epoch else f'iteration {runner.iter}'
    kept, again = describe_last_checkpoint(Path(runner.work_dir))
    return (
        f'the evaluation after {when} failed: {one_line(error, named=True)}; see the log file; '
        f'{kept}. Correct the config, and {again} with `resume`'
    )
