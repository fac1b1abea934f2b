"""Import a command's libraries after its flags were read, so that help does not wait for torch."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ptnt_mm.utils.imports import without_garbage_collection
from ptnt_mm.utils.noise import silence_imported
from ptnt_mm.utils.terminal import use_terminal_everywhere


@contextmanager
def importing() -> Iterator[None]:
    """Run ``ptnt_mm/__init__.py`` if the script ``ptnt`` postponed it, then the block's imports.

    What a user cannot act on is silenced, see `ptnt_mm.utils.noise`.

    Ctrl-C ends the process at once: nothing has begun, and some libraries swallow a
    KeyboardInterrupt. A missing library ends it with one line.
    """
    package = sys.modules['ptnt_mm']
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        with without_garbage_collection():
            if not hasattr(package, '__version__'):
                package.__spec__.loader.exec_module(package)
            yield
            silence_imported()
            use_terminal_everywhere()
    except ImportError as error:
        sys.exit(f'error: {error}. ptnt doctor shows what to install')
    finally:
        signal.signal(signal.SIGINT, before)
