"""Tables: Markdown or plain columns for the terminal, and Markdown for a page."""

from collections.abc import Iterable, Mapping

from rich import box
from rich.console import Console
from rich.table import Table

_NO_WRAP = 10_000  # characters: a console wide enough that no cell is wrapped


def new_table(first: str, *numbers: str) -> Table:
    """Start a Markdown table with one column of names and several of numbers."""
    table = Table(box=box.MARKDOWN)
    table.add_column(first)
    for heading in numbers:
        table.add_column(heading, justify='right')
    return table


def new_listing(*headings: str) -> Table:
    """Start a table without rules: columns of text, two spaces apart."""
    return Table(*headings, box=None, pad_edge=False)


def to_text(table: Table) -> str:
    """Render a table as plain text, one line per row, whatever its cells contain."""
    console = Console(width=_NO_WRAP, color_system=None, markup=False, emoji=False, highlight=False)
    with console.capture() as capture:
        console.print(table)
    lines = (line.rstrip() for line in capture.get().splitlines())
    return '\n'.join(filter(None, lines))


def to_lines(values: Mapping[str, object]) -> str:
    """One line for each value, with its name before it."""
    width = max(map(len, values), default=0)
    return '\n'.join(f'{name:<{width}}  {value}' for name, value in values.items())


def markdown(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table for a page; columns after the first are right-aligned.

    rich cannot write the colons that align columns.
    """
    columns = list(columns)
    rules = ['---', *['---:'] * (len(columns) - 1)]
    return '\n'.join('| ' + ' | '.join(cells) + ' |' for cells in (columns, rules, *rows))
