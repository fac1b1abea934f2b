"""The tables in the docs that are made from the code are up to date."""

import pytest
from repository import ROOT

from .workplace import load_tool

tool = load_tool('dev/tables')


@pytest.mark.parametrize('name', tool.PAGES)
def test_the_tables_of_a_page_are_up_to_date(name: str):
    assert ROOT.joinpath('docs', name).read_text(encoding='utf-8') == tool.with_tables(name), (
        'python tools/dev/tables.py'
    )


def test_every_mark_has_a_table():
    for name, marks in tool.PAGES.items():
        page = tool.with_tables(name)
        for mark in marks:
            _, _, rest = page.partition(f'<!-- {mark} -->\n\n')
            assert rest.partition(f'\n\n<!-- /{mark} -->')[0].count('\n') > 3, mark


def test_every_rule_says_when_a_value_is_wrong():
    lines = tool.with_tables('check_rules.md').splitlines()
    rows = [line.split(' | ') for line in lines if line.startswith('| `')]
    assert len(rows) > 40 and all(len(cells) == 4 and all(cells) for cells in rows)
