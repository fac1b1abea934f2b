"""Progress bars, in a terminal and without one."""

import io
import re
import sys
import time

import pytest

from ptnt_mm.utils.progress import heartbeat, named, new_bar, waiting, watched


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_no_bars_where_standard_error_is_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, 'stderr', None)
    with new_bar() as bar, heartbeat('all', 0.01), waiting('long'):
        assert list(bar.track([1, 2])) == list(watched([1, 2], 2, 'both')) == [1, 2]
        assert bar.disable
        time.sleep(0.05)


def steps() -> None:
    """Steps of a tenth of a second."""
    with heartbeat('all', 0.02):
        with named('first'):
            time.sleep(0.1)
        with waiting('outer'):
            for _ in watched([1], 1, 'inner'):
                time.sleep(0.1)
            time.sleep(0.1)
        time.sleep(0.1)


def test_without_a_terminal_a_line_names_the_step_every_few_seconds(capsys):
    steps()
    lines = capsys.readouterr().err.splitlines()
    assert all(re.fullmatch('[a-z]+ ... 0 s', line) for line in lines)
    assert list(dict.fromkeys(line.split()[0] for line in lines)) == [
        'first',
        'inner',
        'outer',
        'all',
    ]
    assert len(lines) > 8


def test_on_a_terminal_a_bar_is_in_the_place_of_the_one_around_it(monkeypatch):
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.setattr(sys, 'stderr', Terminal())
    steps()
    shown = sys.stderr.getvalue()
    assert shown.index('first ...') < shown.index('inner') < shown.rindex('outer')
    assert not any(f'{title} ...' in shown for title in ('inner', 'outer', 'all'))
    # Never both at once: what is drawn is erased before the next bar is drawn.
    assert not any('inner' in part and 'outer' in part for part in shown.split('\x1b[2K'))
