"""Progress bars without a terminal."""

import sys

import pytest

from ptnt_mm.utils.progress import new_bar, waiting, watched


def test_no_bars_where_standard_error_is_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, 'stderr', None)
    with new_bar() as bar, waiting('long'):
        assert list(bar.track([1, 2])) == list(watched([1, 2], 2, 'both')) == [1, 2]
        assert bar.disable
