"""MMEngine's runner with a console that one can read."""

import logging

from mmengine.logging import MMLogger
from mmengine.runner import Runner

TRACEBACK = 'What failed:'
"""Begins a message for the log file, whose gist the console has in one line."""

# By the first words of a message: one line per parameter, or pages that are in the log file too.
_BULK = (
    'paramwise_options -- ',
    'Config:\n',
    'Hooks will be executed in the following order',
    'Distributed training is not used',
    TRACEBACK,
)


def _fits_the_console(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    bulk = message.lstrip('\n').startswith((*_BULK, '-' * 20))
    return not bulk and 'is skipped since its requires_grad' not in message


class QuietRunner(Runner):
    """A runner whose bulk messages go to the log file and not to the console."""

    def build_logger(
        self, log_level: int | str = 'INFO', log_file: str | None = None, **kwargs
    ) -> MMLogger:
        """Build MMEngine's logger; the arguments are those of ``Runner.build_logger``."""
        logger = super().build_logger(log_level, log_file, **kwargs)
        for handler in logger.handlers:
            if not isinstance(handler, logging.FileHandler):
                handler.addFilter(_fits_the_console)
        return logger
