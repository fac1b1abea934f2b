"""Importing large libraries."""

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lasting_imports() -> Iterator[None]:
    """Keep Python's garbage collector away from what is imported, now and later.

    Torch and mmdet make millions of objects that stay. Looking through them takes a third of the
    time of the imports, and half a second at each later collection: each data set asks for one.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()


# Python's own end, and the reports of leaks of some libraries, count on it.
atexit.register(gc.unfreeze)
