"""Logging that is disabled for a while."""

import logging

import pytest

from ptnt_mm.utils.noise import logging_disabled


@pytest.mark.parametrize('before', [logging.NOTSET, logging.INFO, logging.CRITICAL])
def test_what_was_disabled_before_stays_disabled(before: int):
    logging.disable(before)
    try:
        with pytest.raises(ValueError, match='inside'), logging_disabled(logging.WARNING):
            assert logging.root.manager.disable == max(before, logging.WARNING)
            raise ValueError('inside')
        assert logging.root.manager.disable == before
    finally:
        logging.disable(logging.NOTSET)
