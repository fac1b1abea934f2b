"""Figures side by side: signs, colours, and rows that only some runs have."""

import pytest

from ptnt_mm.workbench.pages.report.tables import (
    COST,
    COUNT,
    PERCENT,
    SCORE,
    MetricTable,
    difference,
    table_of_classes,
)


@pytest.mark.parametrize(
    ('unit', 'value', 'first', 'text', 'kind'),
    [
        (SCORE, 0.5, 0.25, '+0.250', 'better'),
        (SCORE, 0.25, 0.5, '−0.250', 'worse'),
        (SCORE, 0.5, 0.50001, '0.000', ''),
        (PERCENT, 0.5, 0.25, '+25.0 %', 'better'),
        (COST, 0.5, 0.25, '+0.250', 'worse'),
        (COUNT, 3, 5, '−2', ''),
        (SCORE, None, 0.5, '–', ''),
        (SCORE, 0.5, None, '–', ''),
    ],
)
def test_differences_have_a_sign_and_a_direction(unit, value, first, text: str, kind: str):
    assert difference(unit, value, first)[1:] == (text, kind)


def test_differences_are_to_the_first_run():
    table = MetricTable(['a', 'b', 'c'], ['AP'])
    table.add('boxes', SCORE, {run: dict(AP=ap) for run, ap in dict(a=0.1, b=0.2, c=0.4).items()})
    assert [column.heading for column in table.columns] == [
        'a: boxes', 'b: boxes', 'difference', 'c: boxes', 'difference',
    ]  # fmt: skip
    assert [column.cells[0].text for column in table.columns] == [
        '0.100', '0.200', '+0.100', '0.400', '+0.300',
    ]  # fmt: skip
    assert table.compares


def test_classes_of_all_runs_share_a_table():
    rows = {
        'a': [dict(Class='ball', objects=3, AP=0.1), dict(Class='cup', objects=1, AP=None)],
        'b': [dict(Class='cup', objects=1, AP=0.2), dict(Class='saucer', objects=2, AP=0.3)],
    }
    units = lambda metric: COUNT if metric == 'objects' else SCORE  # noqa: E731
    table = table_of_classes(['a', 'b'], rows, units)
    assert table.rows == ['ball', 'cup', 'saucer']
    cells = {column.heading: [c.text for c in column.cells] for column in table.columns}
    assert cells['a: AP'] == ['0.100', '–', '–'] and cells['b: AP'] == ['–', '0.200', '0.300']
    assert cells['a: objects'] == ['3', '1', '–'], 'the data sets differ'
    alike = table_of_classes(['a', 'b'], dict(a=rows['a'], b=rows['a']), units)
    assert [column.heading for column in alike.columns] == [
        'objects',
        'a: AP',
        'b: AP',
        'difference',
    ]
    alone = table_of_classes(['a'], dict(a=rows['a']), units)
    assert [column.heading for column in alone.columns] == ['objects', 'AP'] and not alone.compares
