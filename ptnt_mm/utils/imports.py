"""Importing large libraries."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager


def let_idle_threads_sleep() -> None:
    """Let torch's idle OpenMP threads sleep early, unless the user chose how they wait.

    By default they spin 300,000 times before they sleep. While another program needs the same
    cores, a training step then takes several times as long ("Beside other programs" in
    docs/performance.md). libgomp reads these variables once, when torch is imported.
    """
    if not {'GOMP_SPINCOUNT', 'OMP_WAIT_POLICY'} & os.environ.keys():
        os.environ['GOMP_SPINCOUNT'] = '1000'


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Pause Python's garbage collector while torch or a host is imported.

    Imports create millions of objects but no garbage; looking for it takes a third of their time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
