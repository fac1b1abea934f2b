"""Disable Python's logging for a while."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logging_disabled(level: int = logging.CRITICAL) -> Iterator[None]:
    """Drop the messages of all loggers up to a level; then restore what was dropped before."""
    before = logging.root.manager.disable
    logging.disable(max(level, before))
    try:
        yield
    finally:
        logging.disable(before)
