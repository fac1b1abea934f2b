"""The functions by which the rows of `CAUSES` recognise exceptions.

Each takes an exception, and returns the values that its row puts into the texts; None for all other
exceptions.
"""

import errno
import re
from collections.abc import Callable
from pathlib import Path

from mmengine.dist import get_world_size

from ptnt_mm.utils.errors import UserError, message_of
from ptnt_mm.utils.frames import evaluated_split, failed_download, last_built
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.utils.versions import HOST_IMPORTS, HOST_PACKAGES, ON_FORKS, provider
from ptnt_mm.workbench.config.registered import arguments_of, registered_names

GONE = (errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.EIO, errno.ESTALE, errno.ENOTCONN)
"""Errors for files that have disappeared, and storage that does not respond."""

_ERRNO = re.compile(r'\[Errno (\d+)\] ([^:\n]+?)(?:: \'(.+)\')?\s*$')


def system_error(*numbers: int) -> Callable[[BaseException], dict | None]:
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


def killed_worker(error: BaseException) -> dict | None:
    """Recognise torch's messages about a worker that is gone, or that has no memory to share."""
    if not _says(error, r'DataLoader worker \(pid.*(killed|exited)|/dev/shm|</torch_|bus error'):
        return None
    return dict(loader=f'{evaluated_split(error) or "train"}_dataloader')


def full_gpu(error: BaseException) -> dict | None:
    """Recognise a GPU without free memory."""
    is_full = type(error).__name__ == 'OutOfMemoryError' or 'CUDA out of memory' in str(error)
    return {} if is_full else None


def full_gpu_in_evaluation(error: BaseException) -> dict | None:
    """The same in an evaluation, which has no gradients that could be saved on."""
    split = evaluated_split(error)
    return dict(loader=f'{split}_dataloader') if split and full_gpu(error) is not None else None


def other_process(error: BaseException) -> dict | None:
    """Recognise messages about a connection to another process of the run."""
    is_lost = _says(error, r'Connection (closed by peer|reset)|gloo.*timeout')
    return {} if is_lost and get_world_size() > 1 else None


def _says(error: BaseException, pattern: str) -> bool:
    """Whether a message has a pattern, in any case; a UserError explains itself."""
    return not isinstance(error, UserError) and bool(re.search(pattern, str(error), re.I))


def workers_user_error(error: BaseException) -> dict | None:
    """Recognise a UserError in a worker: torch makes the worker's traceback its message."""
    text = str(error)
    if isinstance(error, UserError) and text.startswith('Caught UserError in DataLoader worker'):
        return dict(message=text.rpartition('UserError: ')[2].strip())
    return None


def not_registered(error: BaseException) -> dict | None:
    """Recognise the name of a class that no registry has."""
    found = re.search(r'(\w+) is not in the (.+?) registry', str(error))
    if found is None:
        return None
    scope, _, kind = found[2].rpartition('::')
    return dict(unknown=unknown_name('type', found[1], sorted(registered_names(kind, scope))))


def refused_argument(error: BaseException) -> dict | None:
    """Recognise an unexpected argument that comes from a config; in other calls it is a bug."""
    found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    cls, arguments = (found and last_built(error)) or (None, {})
    if not isinstance(cls, type) or found[1] not in arguments:
        return None
    known = arguments_of(cls).parameters
    return dict(cls=cls.__name__, unknown=unknown_name('argument', found[1], known))


def failed_data_download(error: BaseException) -> dict | None:
    """Recognise a failed download of a data set."""
    found = failed_download(error) if isinstance(error, OSError) else None
    return found and dict(url=found[0], folder=found[1], error=message_of(error))


def missing_file(error: BaseException) -> dict | None:
    """Recognise a missing file or folder of a data set."""
    if not isinstance(error, FileNotFoundError):
        return None
    return dict(missing=error.filename, how=how_to_get(error.filename))


def invalid_syntax(error: BaseException) -> dict | None:
    """Recognise a file that is not Python."""
    if isinstance(error, SyntaxError) and Path(error.filename or '').is_file():
        # Its message names only the last part of the path.
        return dict(message=error.msg, file=error.filename, line=error.lineno)
    return None


def dict_over_value(error: BaseException) -> dict | None:
    """MMEngine's error about a dict in the place of another type in a base config."""
    said = r"(\w+)=.* in child config cannot inherit from base .* of type <class '([\w.]+)'>"
    found = isinstance(error, TypeError) and re.match(said, str(error), re.DOTALL)
    return dict(key=found[1], kind=found[2].split('.')[-1]) if found else None


def _absent(error: BaseException) -> set[str] | None:
    """The words of the message about a package that is not installed."""
    is_absent = isinstance(error, ModuleNotFoundError)
    return set(re.findall(r'\w+', str(error))) if is_absent else None


def absent_setuptools(error: BaseException) -> dict | None:
    """Recognise a library that needs an older setuptools."""
    return dict(error=message_of(error)) if 'pkg_resources' in (_absent(error) or ()) else None


def absent_fork(error: BaseException) -> dict | None:
    """Recognise a missing host that does not run on the originals, which are installed here."""
    names = {name for name, package in HOST_IMPORTS.items() if package in ON_FORKS}
    is_original = provider('mmengine') == 'mmengine'
    is_absent = is_original and names & (_absent(error) or set())
    return dict(error=message_of(error)) if is_absent else None


def absent_host(error: BaseException) -> dict | None:
    """Recognise a missing host, or a package that one needs."""
    words = _absent(error) or set()
    for name, package in HOST_IMPORTS.items():
        more = HOST_PACKAGES[package]
        if words & {name, package, *more.split()}:
            return dict(error=message_of(error), packages=f'{provider(package)}{more}')
    return None


def absent_package(error: BaseException) -> dict | None:
    """Recognise any other missing package."""
    return None if _absent(error) is None else dict(error=message_of(error))


def how_to_get(path: str | Path) -> str:
    """Name the page that explains how to get a missing file or folder of a data set."""
    pages = (page for name, page in _PUBLIC_DATA.items() if name in str(path))
    if page := next(pages, None):
        return f'{page} explains how to get this data set, docs/data.md how to use your own data'
    if 'demo' in Path(path).parts:
        return 'To create the demo set, run: ptnt demo'
    return 'docs/data.md explains how to use your own data'


_PUBLIC_DATA = {
    'train2017': 'docs/training.md#coco',
    'val2017': 'docs/training.md#coco',
    'ADEChallengeData2016': 'docs/segmentation.md#ade20k-and-cityscapes',
    'leftImg8bit': 'docs/segmentation.md#ade20k-and-cityscapes',
    'gtFine': 'docs/segmentation.md#ade20k-and-cityscapes',
    'imagenet': 'docs/segmentation.md#imagenet',
}
"""Pages that explain how to get public data sets, by parts of the names of their files."""
