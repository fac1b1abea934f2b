"""Importing large libraries."""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from ptnt_mm.utils.errors import UserError

_FOR_PIP = {'sklearn': 'scikit-learn'}  # packages of other names than their modules


def let_idle_threads_sleep() -> None:
    """Let torch's idle OpenMP threads sleep early, unless the user chose how they wait.

    By default they spin 300,000 times before they sleep. While another program needs the same
    cores, a training step then takes several times as long ("Beside other programs" in
    docs/performance.md). libgomp reads these variables once, when torch is imported.
    """
    if not {'GOMP_SPINCOUNT', 'OMP_WAIT_POLICY'} & os.environ.keys():
        os.environ['GOMP_SPINCOUNT'] = '1000'


def require_packages(what: str, *modules: str) -> None:
    """Raise a UserError with what to install unless all modules can be imported.

    Args:
        what: What needs them.
        modules: Their names.
    """
    if missing := sorted(name for name in modules if find_spec(name) is None):
        packages = ' '.join(_FOR_PIP.get(name, name) for name in missing)
        raise UserError(f'{what} needs more packages: pip install {packages}')


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
