"""Write the table of label formats in docs/formats.md from their declarations.

python tools/dev/format_tables.py
"""

import re
from collections.abc import Iterator
from pathlib import Path

from ptnt_mm.workbench.cli.options import as_flags
from ptnt_mm.workbench.data.formats import all_formats

PAGE = Path(__file__).resolve().parents[2] / 'docs' / 'formats.md'
_TABLE = re.compile(r'(?<=<!-- formats -->\n\n)(\|.*\n)*')
_LITERAL = re.compile(r'"([^"]+)"|(<\w+>)')


def with_table(page: str) -> str:
    """The page with a row for each format."""
    return _TABLE.sub(lambda _: ''.join(f'{line}\n' for line in _lines()), page)


def _lines() -> Iterator[str]:
    yield '| `--format` | Format | Tasks | Recognised by | Notes |'
    yield '|---|---|---|---|---|'
    for form in all_formats():
        signs = _LITERAL.sub(lambda found: f'`{found[1] or found[2]}`', as_flags(form.looks_for))
        tasks = ', '.join(form.tasks)
        yield f'| `{form.name}` | {form.title} | {tasks} | {signs} | {form.note} |'


if __name__ == '__main__':
    PAGE.write_text(with_table(PAGE.read_text(encoding='utf-8')), encoding='utf-8')
