"""Why something failed that a user can put right: how to recognise it, what to say, what to do.

`CAUSES` is the table; :func:`explain` goes through it. Those who catch an exception choose the
kinds of causes that can be to blame, and add what only they know, such as the last checkpoint.
"""

import errno
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

from mmengine.dist import get_world_size

from ptnt_mm.explain.frames import failed_download, failing_line, last_built
from ptnt_mm.explain.registered import arguments_of, registered_names
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.utils.versions import HOST_IMPORTS, HOST_PACKAGES, provider


class Kind(Enum):
    """Who or what is to blame."""

    DISK = auto()  # nothing can be written to it any more
    STORAGE = auto()  # a file has disappeared, or what it is on does not respond
    PROCESS = auto()  # memory, or another process of the run
    CONFIG = auto()  # a class or an argument in it
    SYNTAX = auto()  # of a config file
    DATA = auto()  # a data set whose files are not there
    PACKAGE = auto()  # one that is not installed


@dataclass(frozen=True)
class Explanation:
    """An exception in words.

    Attributes:
        kind: Kind of its cause.
        what: What is wrong, without a full stop.
        advice: What to do, without a full stop; empty if that follows from ``what``.
        file: The file that the system refused, if it is known.
    """

    kind: Kind
    what: str
    advice: str = ''
    file: str = ''

    def __str__(self) -> str:
        return '. '.join(filter(None, (self.what, self.advice)))


@dataclass(frozen=True)
class Cause:
    """A row of the table.

    Attributes:
        kind: Its kind.
        recognise: Returns the values to insert into the texts below; None for other exceptions.
        what: Text of :class:`Explanation`.
        advice: Text of :class:`Explanation`.
    """

    kind: Kind
    recognise: Callable[[BaseException], dict[str, Any] | None]
    what: str
    advice: str = ''


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


def one_line(error: BaseException, named: bool = False) -> str:
    """The first line of an exception's message.

    Args:
        error: The exception. Without a message, as many assertions are, it is described by its
            class and the line of code that raised it.
        named: Whether to put the name of the class before the message too.
    """
    name = type(error).__name__
    message, _, rest = str(error).strip().partition('\n')
    if ' in DataLoader worker process ' in message:
        # torch makes the worker's traceback the message; its last line has the name, too.
        return rest.rpartition('\n')[2]
    message = message.strip()
    if not message:
        return ': '.join(filter(None, (name, failing_line(error))))
    return f'{name}: {message}' if named else message


def is_about_the_disk(error: BaseException) -> bool:
    """Whether writing failed for a reason that affects all files, such as a full disk."""
    return explain(error, Kind.DISK) is not None


def how_to_get(path: str | Path) -> str:
    """Name the page that explains how to get a missing file or folder of a data set."""
    pages = (page for name, page in _PUBLIC_DATA.items() if name in str(path))
    if page := next(pages, None):
        return f'{page} explains how to get this data set, docs/data.md how to use your own data'
    return 'docs/data.md explains how to use your own data. To create the demo set, run: ptnt demo'


_PUBLIC_DATA = {
    'train2017': 'docs/training.md#coco',
    'val2017': 'docs/training.md#coco',
    'ADEChallengeData2016': 'docs/segmentation.md#ade20k-and-cityscapes',
    'leftImg8bit': 'docs/segmentation.md#ade20k-and-cityscapes',
    'gtFine': 'docs/segmentation.md#ade20k-and-cityscapes',
    'imagenet': 'docs/classification.md#evaluate-a-published-checkpoint',
}
"""Pages that explain how to get public data sets, by parts of the names of their files."""

# How causes are recognised.

_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOTCONN)
"""Errors for files that have disappeared, and storage that does not respond."""

_ERRNO = re.compile(r'\[Errno (\d+)\] ([^:\n]+?)(?:: \'(.+)\')?\s*$')


def _system(*numbers: int) -> Callable[[BaseException], dict | None]:
    """Recognise an OSError by its number, also as the cause of a UserError."""

    def recognise(error: BaseException) -> dict | None:
        # UserErrors of atomic writes have the OSError as their cause.
        cause = error.__cause__ if isinstance(error, UserError) else error
        if not isinstance(cause, OSError):
            return None
        number, reason, file = cause.errno, cause.strerror or '', str(cause.filename or '')
        # For an error in a worker, torch keeps only the text.
        if number is None and (found := _ERRNO.search(str(cause))):
            number, reason, file = int(found[1]), found[2], found[3] or ''
        if number not in numbers:
            return None
        named = f'{reason}: {file!r}' if file else reason
        return dict(named=str(error) if isinstance(error, UserError) else named, file=file)

    return recognise


def _text(pattern: str) -> Callable[[BaseException], dict | None]:
    """Recognise an exception by its message, in any case; a UserError explains itself."""
    return lambda error: (
        {} if not isinstance(error, UserError) and re.search(pattern, str(error), re.I) else None
    )


def _gpu_memory(error: BaseException) -> dict | None:
    is_full = type(error).__name__ == 'OutOfMemoryError' or 'CUDA out of memory' in str(error)
    return {} if is_full else None


def _other_process(error: BaseException) -> dict | None:
    lost = _text(r'Connection (closed by peer|reset)|gloo.*timeout')
    return lost(error) if get_world_size() > 1 else None


def _workers_user_error(error: BaseException) -> dict | None:
    """Recognise a UserError in a worker: torch makes the worker's traceback its message."""
    text = str(error)
    if isinstance(error, UserError) and text.startswith('Caught UserError in DataLoader worker'):
        return dict(message=text.rpartition('UserError: ')[2].strip())
    return None


def _not_registered(error: BaseException) -> dict | None:
    found = re.search(r'(\w+) is not in the (.+?) registry', str(error))
    if found is None:
        return None
    scope, _, kind = found[2].rpartition('::')
    return dict(unknown=unknown_name('type', found[1], sorted(registered_names(kind, scope))))


def _refused_argument(error: BaseException) -> dict | None:
    """Recognise an unexpected argument that comes from a config; in other calls it is a bug."""
    found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    cls, arguments = (found and last_built(error)) or (None, {})
    if not isinstance(cls, type) or found[1] not in arguments:
        return None
    known = arguments_of(cls).parameters
    return dict(cls=cls.__name__, unknown=unknown_name('argument', found[1], known))


def _download(error: BaseException) -> dict | None:
    found = failed_download(error) if isinstance(error, OSError) else None
    return found and dict(url=found[0], folder=found[1], error=error)


def _missing_file(error: BaseException) -> dict | None:
    if not isinstance(error, FileNotFoundError):
        return None
    return dict(missing=error.filename, how=how_to_get(error.filename))


def _invalid_syntax(error: BaseException) -> dict | None:
    if isinstance(error, SyntaxError) and Path(error.filename or '').is_file():
        # Its message names only the last part of the path.
        return dict(message=error.msg, file=error.filename, line=error.lineno)
    return None


def _absent(error: BaseException) -> set[str] | None:
    """The words of the message about a package that is not installed."""
    is_absent = isinstance(error, ModuleNotFoundError)
    return set(re.findall(r'\w+', str(error))) if is_absent else None


def _absent_setuptools(error: BaseException) -> dict | None:
    return dict(error=error) if 'pkg_resources' in (_absent(error) or ()) else None


def _absent_host(error: BaseException) -> dict | None:
    words = _absent(error) or set()
    for name, package in HOST_IMPORTS.items():
        more = HOST_PACKAGES[package]
        if words & {name, package, *more.split()}:
            return dict(error=error, packages=f'{provider(package)}{more}')
    return None


def _absent_package(error: BaseException) -> dict | None:
    return None if _absent(error) is None else dict(error=error)


CAUSES = (
    Cause(Kind.DISK, _system(errno.ENOSPC), 'the disk is full ({named})', 'make room'),
    Cause(Kind.DISK, _system(errno.EDQUOT), 'the disk quota is used up ({named})', 'make room'),
    Cause(
        Kind.DISK, _system(errno.EROFS), 'the disk is read-only now ({named})', 'make it writable'
    ),
    Cause(
        Kind.STORAGE,
        _system(*_GONE),
        '{named}',
        'If data was moved, or its storage is no longer connected, restore it',
    ),
    Cause(Kind.CONFIG, _workers_user_error, '{message}'),
    Cause(
        Kind.PROCESS,
        _text(r'DataLoader worker \(pid.*(killed|exited)|/dev/shm|</torch_|bus error'),
        'a worker of the data loader was killed: most often memory ran out, or /dev/shm is too '
        'small for the images in transfer (docker run --shm-size=8g)',
        'Fewer workers need less of both: `train_dataloader.num_workers=1`',
    ),
    Cause(
        Kind.PROCESS,
        _gpu_memory,
        'the GPU is out of memory',
        'Try, in this order: mixed precision (`amp`), `model.backbone.with_cp=True`, '
        'then train_dataloader.batch_size=1 with optim_wrapper.accumulative_counts=2; see '
        'docs/performance.md for more',
    ),
    Cause(
        Kind.PROCESS,
        _other_process,
        'another process of this run stopped, so this one does too; the first error is in its '
        'output',
    ),
    Cause(Kind.CONFIG, _not_registered, '{unknown}'),
    Cause(Kind.CONFIG, _refused_argument, '{cls}: {unknown}'),
    Cause(
        Kind.DATA,
        _download,
        '{url} cannot be downloaded: {error}',
        'Download it on another machine, and put the archive into the folder {folder}',
    ),
    Cause(Kind.DATA, _missing_file, '{missing} does not exist', '{how}'),
    Cause(Kind.SYNTAX, _invalid_syntax, 'SyntaxError: {message} ({file}, line {line})'),
    Cause(
        Kind.PACKAGE,
        _absent_setuptools,
        '{error}',
        'Install an older setuptools: pip install "setuptools<81"',
    ),
    Cause(
        Kind.PACKAGE,
        _absent_host,
        '{error}',
        'Install it: pip install {packages}; then run ptnt doctor',
    ),
    Cause(Kind.PACKAGE, _absent_package, '{error}', 'ptnt doctor shows what is installed'),
)
"""The first row that recognises an exception explains it."""
