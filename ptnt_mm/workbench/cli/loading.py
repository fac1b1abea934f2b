"""Import the libraries of a command. Help does not wait for torch, so this comes after parsing."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ptnt_mm import workbench
from ptnt_mm.utils.imports import let_idle_threads_sleep, without_garbage_collection
from ptnt_mm.utils.noise import silence_imported


@contextmanager
def importing() -> Iterator[None]:
    """Register the classes of ptnt_mm if that was postponed, then run the block's imports.

    What a user cannot act on is silenced, see `ptnt_mm.utils.noise`.

    Ctrl-C ends the process at once: nothing has begun, and some libraries swallow a
    KeyboardInterrupt. A missing library ends it with one line.
    """
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    try:
        announce()
        let_idle_threads_sleep()
        with without_garbage_collection():
            workbench.register()
            yield
            silence_imported()
            with suppress(ImportError):
                from mmengine.logging import MMLogger

                from ptnt_mm.utils.terminal import use_terminal

                # The hosts use the default logger outside of runs.
                use_terminal(MMLogger.get_current_instance())
    except ImportError as error:
        sys.exit(f'error: {error}. ptnt doctor shows what to install')
    finally:
        signal.signal(signal.SIGINT, before)


def announce() -> None:
    """Print a line before imports that take seconds, more on a busy machine, by one process."""
    is_first = os.environ.get('RANK', '0') == '0'
    if 'torch' not in sys.modules and is_first and sys.stderr is not None:
        print('Loading libraries ...', file=sys.stderr, flush=True)
