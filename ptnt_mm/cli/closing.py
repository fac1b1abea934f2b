"""The last lines of a run or a test: scores, paths, and what comes next."""

from collections.abc import Mapping, Sequence

from ptnt_mm.utils.tables import new_listing, to_text

_MOST = 30  # classes


def class_table(rows: Sequence[Mapping[str, object]]) -> str:
    """A line for each class with its scores; none if there are no rows."""
    if not rows:
        return ''
    table = new_listing()
    for name in rows[0]:
        table.add_column(name.lower() if name == 'Class' else name, justify=_side(name))
    for row in rows[:_MOST]:
        table.add_row(*(_cell(value) for value in row.values()))
    more = len(rows) - _MOST
    return to_text(table) + (f'\n... and {more} more: ptnt report shows all' if more > 0 else '')


def _side(name: str) -> str:
    return 'left' if name == 'Class' else 'right'


def _cell(value: object) -> str:
    if value is None or value != value:  # NaN
        return '–'
    return f'{value:.3f}' if isinstance(value, float) else str(value)
