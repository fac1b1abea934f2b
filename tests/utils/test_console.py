"""The exit status of commands, and colours, only on a terminal."""

import io
import sys

import pytest

from ptnt_mm.utils.console import exit_status, show, wrapped
from ptnt_mm.utils.errors import UserError

TEXT = 'error: no file error.py\n  warning  train: odd [red]\ntorch 2.5 BROKEN\nan error in it'


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.delenv('NO_COLOR', raising=False)
    monkeypatch.setenv('TERM', 'xterm')
    monkeypatch.setenv('FORCE_COLOR', '1')  # rich assumes a terminal


def test_anywhere_else_text_stays_as_it_is(monkeypatch, capsys):
    monkeypatch.delenv('FORCE_COLOR', raising=False)
    show(TEXT + 'x' * 300)
    show(TEXT, stderr=True)
    assert capsys.readouterr() == (TEXT + 'x' * 300 + '\n', TEXT + '\n')


def test_bad_news_is_coloured(terminal, capsys):
    show(TEXT)
    red, yellow, off = '\x1b[31m', '\x1b[33m', '\x1b[0m'
    assert capsys.readouterr().out.splitlines() == [
        f'{red}error{off}: no file error.py',
        f'  {yellow}warning{off}  train: odd [red]',
        f'torch 2.5 {red}BROKEN{off}',
        'an error in it',
    ]


@pytest.mark.parametrize(
    ('line', 'rest'),
    [
        ('one two three four five six', '    '),
        ('  one two three four five six', '    '),
        ('      one two three four five six', '      '),
        ('  yolo  a data.yaml with names', ' ' * 8),
        ('  new  1 a.weight, b.weight, c.weight', ' ' * 7),
        ('  loss  AP 0.2 of all  AP 0.4 of some', ' ' * 8),
        ('      a/path/that/is/longer/than/a/line is whole', ' ' * 6),
        ('written to a/longer/path  with two words', '    '),
    ],
)
def test_the_rest_of_a_line_is_below_its_cell(line: str, rest: str):
    first, *others = wrapped(line, 26).split('\n')
    assert others and line.startswith(first)
    for other in others:
        assert other.startswith(rest) and other[len(rest)] != ' '


def test_exit_status(capsys: pytest.CaptureFixture):
    def fail():
        raise UserError('fix this')

    def stop():
        raise KeyboardInterrupt

    assert [exit_status(command) for command in (lambda: None, lambda: 3, fail, stop)] == [
        0,
        3,
        1,
        130,
    ]
    assert capsys.readouterr().err == 'error: fix this\n\nStopped.\n'


def test_output_that_is_not_utf8_is_printed(monkeypatch: pytest.MonkeyPatch):
    printed = io.BytesIO()
    monkeypatch.setattr(sys, 'stdout', io.TextIOWrapper(printed, 'utf-8', write_through=True))
    assert exit_status(lambda: print('f\udce4hre')) == 0
    assert printed.getvalue() == b'f\\udce4hre\n'


def test_a_traceback_on_request(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch):
    def build() -> None:
        try:
            raise KeyError('foo')
        except KeyError as error:
            raise UserError('it cannot be built') from error

    monkeypatch.setenv('PTNT_TRACEBACK', '1')
    assert exit_status(build) == 1
    printed = capsys.readouterr().err
    assert "KeyError: 'foo'" in printed and printed.endswith('error: it cannot be built\n')
