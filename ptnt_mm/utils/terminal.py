"""Decide what of a log reaches the terminal, and how wide its lines are. The log file has all.

Shown are errors, warnings that a user can act on, and what the user's own code and ptnt_mm log, but
not with ``extra=FOR_THE_FILE``. How far a run is, `ptnt_mm.workbench.engine.run_display` shows.
"""

import logging
import shutil
import sys
from contextlib import suppress
from types import FrameType

from ptnt_mm.utils.console import for_user, is_terminal, show, wrapped
from ptnt_mm.utils.errors import in_quotes
from ptnt_mm.utils.noise import is_noise, is_ours, library_of

FOR_THE_FILE = {'for_the_file': True}
"""The ``extra`` of information that is not for the terminal."""

TRACEBACK = 'What failed:'
"""Prefix of a message for the log file that the terminal summarises in one line."""

_EXPLAINED = 'The testing results of the whole dataset is empty'
"""An error of mmdet's metrics that `HealthHook` explains; training continues."""

_WIDTH = 100  # characters in a file or a pipe


class TerminalHandler(logging.Handler):
    """Prints log records for the user of a run, in place of MMEngine's handler for the console."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record if it is for the terminal; the user's own lines are not wrapped."""
        try:
            file = _caller().f_code.co_filename
            if _is_shown(record, file):
                level = f'{record.levelname.lower()}: ' if record.levelno > logging.INFO else ''
                line = f'{level}{self.format(record)}'
                if library_of(file):
                    line = in_quotes(line)
                (show_wrapped if library_of(file) or is_ours(file) else show)(line)
        except Exception:  # as logging's own handlers do: a message never stops a run
            self.handleError(record)


def show_wrapped(text: str, column: int = 4) -> None:
    """Print text on standard output, long lines as :func:`wrapped` returns them."""
    with suppress(BrokenPipeError):  # nobody reads any more: no reason to stop a run
        show(wrapped(for_user(text), line_width(), column))


def line_width() -> int:
    """The width of the terminal in characters; 100 for a file or a pipe."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else _WIDTH


def use_terminal(logger: logging.Logger) -> None:
    """Replace the handler of MMEngine's logger that prints everything."""
    for index, handler in enumerate(logger.handlers):
        if type(handler) is logging.StreamHandler:
            ours = TerminalHandler(handler.level)
            ours.filters = handler.filters  # MMEngine's, of repeated warnings
            logger.handlers[index] = ours


def _is_shown(record: logging.LogRecord, file: str) -> bool:
    """Whether the terminal shows a record that code in a file logged."""
    message = record.getMessage()
    if record.levelno >= logging.ERROR:
        return not message.startswith((TRACEBACK, _EXPLAINED))
    if record.levelno == logging.WARNING:
        return not is_noise(message, file)
    return not library_of(file) and not getattr(record, 'for_the_file', False)


def _caller() -> FrameType:
    """The frame that logged; MMEngine's `print_log` may have passed it on."""
    frame, inner = sys._getframe(1), ('logging.', 'mmengine.logging.', f'{__name__}.')
    while frame.f_back and f'{frame.f_globals.get("__name__", "")}.'.startswith(inner):
        frame = frame.f_back
    return frame
