"""One training at a time in a work dir."""

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ptnt_mm.utils.errors import UserError

_NAME = '.lock'


@contextmanager
def locked(work_dir: Path) -> Iterator[None]:
    """Keep others out of a work dir.

    The system gives the lock back when the process ends, however it ends: a file that a killed run
    left keeps nobody out. A record lock, which the workers of data loaders do not inherit: they
    outlive a killed training by seconds. Shared file systems carry it to other machines; where one
    knows no locks, nobody is kept out.

    Raises:
        UserError: if another process trains there; names its machine and process id.
    """
    with (work_dir / _NAME).open('a+') as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                file.seek(0)
                raise UserError(
                    f'{work_dir} is in use by {file.read().strip() or "another process"}: wait for '
                    'it, stop it, or choose another --work-dir'
                ) from error
        file.truncate(0)
        file.write(f'process {os.getpid()} on {socket.gethostname()}\n')
        file.flush()
        yield
