"""Write the tables of label formats in the docs from their declarations.

python tools/dev/format_tables.py
"""

import re
from collections.abc import Sequence
from pathlib import Path

from ptnt_mm.workbench.cli.options import as_flags
from ptnt_mm.workbench.data.formats import all_formats
from ptnt_mm.workbench.data.writers import all_writers

_DOCS = Path(__file__).resolve().parents[2] / 'docs'
PAGES = (_DOCS / 'formats.md', _DOCS / 'inference.md')
_LITERAL = re.compile(r'"([^"]+)"|(<\w+>)')


def with_tables(page: str) -> str:
    """The page with a row for each format or writer, if it has a mark for their table."""
    formats = (
        (f'`{form.name}`', form.title, ', '.join(form.tasks), _signs(form.looks_for), form.note)
        for form in all_formats()
    )
    writers = (
        (f'`{name}`', writer.files, writer.scores, writer.masks or 'no place; a line says so')
        for name, writer in all_writers().items()
    )
    formats = ('`--format`', 'Format', 'Tasks', 'Recognised by', 'Notes'), *formats
    writers = ('`--labels`', 'Files in `OUT/labels`', 'Score', 'Masks'), *writers
    return _with(_with(page, 'formats', *formats), 'writers', *writers)


def _with(page: str, mark: str, *rows: Sequence[str]) -> str:
    head, *others = (f'| {" | ".join(cells)} |\n' for cells in rows)
    text = ''.join((head, f'|{"---|" * len(rows[0])}\n', *others))
    return re.sub(rf'(?<=<!-- {mark} -->\n\n)(\|.*\n)*', lambda _: text, page)


def _signs(text: str) -> str:
    """What a format is recognised by, with keys and tags as code."""
    return _LITERAL.sub(lambda found: f'`{found[1] or found[2]}`', as_flags(text))


if __name__ == '__main__':
    for file in PAGES:
        file.write_text(with_tables(file.read_text(encoding='utf-8')), encoding='utf-8')
