"""A table of scores by class, for the end of a run or a test."""

from collections.abc import Mapping, Sequence

from ptnt_mm.utils.tables import new_listing, to_text

_MOST = 30  # classes


def class_table(rows: Sequence[Mapping[str, object]]) -> str:
    """A line for each class with its scores; empty if there are no rows."""
    if not rows:
        return ''
    table = new_listing()
    for name in rows[0]:
        table.add_column(name, justify='left' if name == 'class' else 'right')
    for row in rows[:_MOST]:
        table.add_row(*map(_cell, row.values()))
    more = len(rows) - _MOST
    return to_text(table) + (f'\n... and {more} more: ptnt report shows all' if more > 0 else '')


def _cell(value: object) -> str:
    if value is None or value != value:  # NaN
        return '–'
    return f'{value:.3f}' if isinstance(value, float) else str(value)
