"""Markdown tables: aligned for the terminal, or of any width for a page."""

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table

_WIDTH = 120


def new_table(first: str, *numbers: str) -> Table:
    """Start a Markdown table with one column of names and several of numbers."""
    table = Table(box=box.MARKDOWN)
    table.add_column(first)
    for heading in numbers:
        table.add_column(heading, justify='right')
    return table


def to_text(table: Table) -> str:
    """Render a table as text."""
    console = Console(width=_WIDTH)
    with console.capture() as capture:
        console.print(table)
    return capture.get().strip()


def markdown(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table of any width; columns after the first are right-aligned."""
    columns = list(columns)
    rules = ['---', *['---:'] * (len(columns) - 1)]
    return '\n'.join('| ' + ' | '.join(cells) + ' |' for cells in (columns, rules, *rows))
