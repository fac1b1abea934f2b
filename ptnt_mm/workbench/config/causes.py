"""The table of causes: what exceptions are recognised, how they are explained, and what to do.

Those who catch an exception call :func:`explain` with the kinds of causes that are possible there,
and add what only they know, such as the last checkpoint.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ptnt_mm.workbench.config import recognisers as by


class Kind(Enum):
    """Who or what is to blame, and where exceptions of the kind are explained."""

    # In training and in tests (`engine/failures.py`):
    DISK = auto()  # nothing can be written to it any more; also while a run is built
    STORAGE = auto()  # a file has disappeared, or what it is on does not respond
    PROCESS = auto()  # memory, or another process of the run
    CONFIG = auto()  # a class or an argument in it; also while it is built (`build_errors.py`)
    # While a data set is built (`build_errors.py`):
    DATA = auto()  # its files are not there
    # While a config is read (`config/read.py`), or a host is imported (`config/hosts.py`):
    SYNTAX = auto()  # a file is not Python, or does not fit its base config
    PACKAGE = auto()  # one is not installed


@dataclass(frozen=True)
class Cause:
    """A row of the table.

    Attributes:
        kind: Its kind.
        recognise: Returns the values to insert into the texts below; None for other exceptions.
        what: What is wrong, without a full stop.
        advice: What to do, as a sentence without a full stop; empty if that follows from ``what``.
    """

    kind: Kind
    recognise: Callable[[BaseException], dict[str, Any] | None]
    what: str
    advice: str = ''


CAUSES = (
    Cause(Kind.DISK, by.system_error(errno.ENOSPC), 'the disk is full ({named})', 'Make room'),
    Cause(
        Kind.DISK, by.system_error(errno.EDQUOT), 'the disk quota is used up ({named})', 'Make room'
    ),
    Cause(
        Kind.DISK,
        by.system_error(errno.EROFS),
        'the disk is read-only now ({named})',
        'Make it writable',
    ),
    Cause(
        Kind.STORAGE,
        by.system_error(*by.GONE),
        '{named}',
        'If data was moved, or its storage is no longer connected, restore it',
    ),
    Cause(Kind.CONFIG, by.workers_user_error, '{message}'),
    Cause(
        Kind.PROCESS,
        by.killed_worker,
        'a worker of the data loader was killed: most often memory ran out, or /dev/shm is too '
        'small for the images in transfer (docker run --shm-size=8g)',
        'Fewer workers need less of both: `{loader}.num_workers=1`',
    ),
    Cause(
        Kind.PROCESS,
        by.full_gpu_in_evaluation,
        'the GPU is out of memory while it evaluates',
        'Try `{loader}.batch_size=1`, then smaller images in its pipeline',
    ),
    Cause(
        Kind.PROCESS,
        by.full_gpu,
        'the GPU is out of memory',
        'Try, in this order: mixed precision (`amp`), `model.backbone.with_cp=True`, '
        'then train_dataloader.batch_size=1 with optim_wrapper.accumulative_counts=2; see '
        'docs/performance.md for more',
    ),
    Cause(
        Kind.PROCESS,
        by.other_process,
        'another process of this run stopped, so this one does too; the first error is in its '
        'output',
    ),
    Cause(Kind.CONFIG, by.not_registered, '{unknown}'),
    Cause(Kind.CONFIG, by.refused_argument, '{cls}: {unknown}'),
    Cause(
        Kind.DATA,
        by.failed_data_download,
        '{url} cannot be downloaded: {error}',
        'Download it on another machine, and put the archive into the folder {folder}',
    ),
    Cause(Kind.DATA, by.missing_file, '{missing} does not exist', '{how}'),
    Cause(Kind.SYNTAX, by.invalid_syntax, 'SyntaxError: {message} ({file}, line {line})'),
    Cause(
        Kind.SYNTAX,
        by.dict_over_value,
        '{key} is a dict, but of type {kind} in the base config',
        'To replace it, add _delete_=True to the dict',
    ),
    Cause(
        Kind.PACKAGE,
        by.absent_setuptools,
        '{error}',
        'Install an older setuptools: pip install "setuptools<81"',
    ),
    Cause(
        Kind.PACKAGE,
        by.absent_fork,
        '{error}',
        'It runs on the forks of the hosts: docs/install.md#with-the-maintained-forks',
    ),
    Cause(
        Kind.PACKAGE,
        by.absent_host,
        '{error}',
        'Install it: pip install {packages}; then run ptnt doctor',
    ),
    Cause(Kind.PACKAGE, by.absent_package, '{error}', 'ptnt doctor shows what is installed'),
)
"""The first row that recognises an exception explains it."""


@dataclass(frozen=True)
class Explanation:
    """An exception in words.

    Attributes:
        kind: Kind of its cause.
        what: What is wrong, without a full stop.
        advice: What to do, as a sentence without a full stop; empty if that follows from ``what``.
        file: The file that the system refused, if it is known.
    """

    kind: Kind
    what: str
    advice: str = ''
    file: str = ''

    def __str__(self) -> str:
        return '. '.join(filter(None, (self.what, self.advice)))


def explain(error: BaseException, *kinds: Kind) -> Explanation | None:
    """Explain an exception by the first row of `CAUSES` that recognises it; None without any.

    Args:
        error: Any exception.
        kinds: The kinds of causes to consider.
    """
    for cause in CAUSES:
        found = cause.recognise(error) if cause.kind in kinds else None
        if found is not None:
            texts = (text.format(**found) for text in (cause.what, cause.advice))
            return Explanation(cause.kind, *texts, file=found.get('file', ''))
    return None
