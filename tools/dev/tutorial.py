"""Generate docs/tutorial.ipynb from docs/start.md, or run it and update the page's outputs.

    python tools/dev/tutorial.py
    python tools/dev/tutorial.py --run FOLDER

The second command runs the notebook in FOLDER first, unless it has done so before. The notebook has
what follows `<!-- tutorial -->` on the page. A `shell` or `python` block there is a cell, and the
`text` block below it shows some lines of its output, with `...` for omissions. A comment that
starts with `<!-- cell` has the code of the notebook where it differs from the block that follows; a
picture always has such a comment.
"""

import argparse
import base64
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode, v4

from ptnt_mm.utils.atomic_files import write_atomically
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.tables import markdown
from ptnt_mm.workbench.cli.start import Parser

DOCS = Path(__file__).resolve().parents[2] / 'docs'
MARK = '<!-- tutorial -->\n'

_STEP = re.compile(
    r'(?:<!-- cell\n(?P<cell>.*?)\n-->\n)?'
    r'(?:<!-- not run: (?:(?!-->).)*-->\n)?'
    r'(?:```(?P<language>shell|python)\n(?P<code>.*?)\n```|!\[[^]]*\]\((?P<picture>[^)]+)\))$'
    r'(?:\n\n```text\n(?P<output>.*?)\n```$)?',
    re.DOTALL | re.MULTILINE,
)
_TIMES = re.compile(r'(?<=<!-- times -->\n).*?(?=<!-- end -->)', re.DOTALL)
_COMMENT = re.compile(r'<!--.*?-->\n?', re.DOTALL)
_LINK = re.compile(r'\[([^]]+)\]\((?!\w+:)([^)#]+)(?:#[^)]*)?\)')
_CONTROL = re.compile(r'\x1b\[[0-9;?]*[A-Za-z]')

# A command that fails does not stop a notebook. The sum is the CPU time of the kernel and of the
# commands that it ran.
_CHECK = """\
import os
assert not globals().pop('_exit_code', 0), 'the command failed'
print(sum(os.times()[:4]))"""


@dataclass(frozen=True)
class Run:
    """The result of one cell.

    Attributes:
        text: Its output as plain text.
        picture: The JPEG file that it shows, if any.
        seconds: Its CPU time.
    """

    text: str
    picture: bytes | None
    seconds: float


def main(words: list[str] | None = None) -> int:
    """Run the command line; return its exit status."""
    parser = Parser(__doc__)
    parser.add_argument('--run', type=Path, metavar='FOLDER', help='run the notebook there first')
    return parser.run(_write_tutorial, words)


def _write_tutorial(args: argparse.Namespace) -> None:
    file = DOCS / 'start.md'
    head, mark, page = file.read_text(encoding='utf-8').partition(MARK)
    if args.run:
        args.run.mkdir(parents=True, exist_ok=True)
        done = args.run / 'done.ipynb'
        if not done.exists():
            write_atomically(done, nbformat.writes(execute(make_notebook(page), args.run)))
        runs = read_runs(nbformat.read(done, as_version=4))
        page = with_outputs(page, runs)
        for step, run in zip(_STEP.finditer(page), runs, strict=True):
            if step['picture']:
                write_atomically(DOCS / step['picture'], run.picture)
        write_atomically(file, head + mark + page)
    write_atomically(DOCS / 'tutorial.ipynb', nbformat.writes(make_notebook(page)) + '\n')


def make_notebook(page: str) -> NotebookNode:
    """Create the notebook of a page: text and code, without outputs."""
    cells = list(_cells(page))
    for number, cell in enumerate(cells):
        cell.id = f'cell-{number}'  # by default random
    kernel = dict(name='python3', display_name='Python 3', language='python')
    metadata = dict(kernelspec=kernel, language_info=dict(name='python'))
    return v4.new_notebook(cells=cells, metadata=metadata)


def _cells(page: str) -> Iterator[NotebookNode]:
    start = 0
    for step in _STEP.finditer(page):
        if prose := _prose(page[start : step.start()]):
            yield v4.new_markdown_cell(prose)
        yield v4.new_code_cell(step['cell'] or _code(step['language'], step['code']))
        start = step.end()
    yield v4.new_markdown_cell(_prose(page[start:]))


def _prose(text: str) -> str:
    """Remove comments, and links to other pages, which a notebook on Colab does not have."""
    return _LINK.sub(r'\1 (`docs/\2`)', _COMMENT.sub('', text)).strip()


def _code(language: str, code: str) -> str:
    """Return the code of a cell; in a shell block, each line that is not indented is a command."""
    return re.sub(r'^(?=\S)', '!', code, flags=re.MULTILINE) if language == 'shell' else code


def execute(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Run the code of a notebook in a folder.

    Returns:
        Its cells with code and their outputs, each followed by one that prints the CPU time so far.

    Raises:
        UserError: if a cell or a command fails.
    """
    codes = [cell.source for cell in notebook.cells if cell.cell_type == 'code']
    cells = [v4.new_code_cell(source) for code in codes for source in (code, _CHECK)]
    running = v4.new_notebook(cells=cells)
    place = dict(metadata=dict(path=str(folder)))
    try:
        NotebookClient(running, timeout=None, kernel_name='python3', resources=place).execute()
    except CellExecutionError as error:
        printed = '\n'.join(_text(cell) for cell in cells)
        raise UserError(f'{printed}\nthe notebook stopped: {error.evalue}') from error
    return running


def read_runs(done: NotebookNode) -> list[Run]:
    """Return the result of each cell with code of a notebook that :func:`execute` has run."""
    clock = [0.0, *(float(_text(cell)) for cell in done.cells[1::2])]
    return [
        Run(_text(cell), _picture(cell), after - before)
        for cell, (before, after) in zip(done.cells[::2], pairwise(clock), strict=True)
    ]


def _text(cell: NotebookNode) -> str:
    """Return what a cell printed, without colours; a rewritten line appears in its last form."""
    text = ''.join(output.get('text', '') for output in cell.outputs).replace('\r\n', '\n')
    lines = _CONTROL.sub('', text).split('\n')
    return '\n'.join(line.rstrip('\r').rpartition('\r')[2] for line in lines)


def _picture(cell: NotebookNode) -> bytes | None:
    shown = (output.get('data', {}).get('image/jpeg') for output in cell.outputs)
    return next((base64.b64decode(data) for data in shown if data), None)


def with_outputs(page: str, runs: list[Run]) -> str:
    """Return the page with these outputs and times instead of its own.

    Raises:
        UserError: if an output has no line like one that the page shows.
    """
    remaining = iter(runs)
    times = []

    def refresh(step: re.Match) -> str:
        run = next(remaining)
        if step['language'] == 'shell' and step['code'].startswith('ptnt'):
            times.append([f'`{step["code"]}`', f'{run.seconds:.0f}'])
        if not step['output']:
            return step[0]
        return step[0].replace(step['output'], refreshed(step['output'], run.text))

    page = _STEP.sub(refresh, page)
    table = markdown(['command', 'CPU seconds'], times)
    return _TIMES.sub(lambda _: f'\n{table}\n\n', page)


def refreshed(excerpt: str, printed: str) -> str:
    """Return the lines of an excerpt as an output now has them: other numbers, the same words.

    Args:
        excerpt: Lines of an earlier output; a line `...` stands for any lines, and `...` within a
            line for any text.
        printed: The whole output.

    Raises:
        UserError: if the output has no such line after the one before.
    """
    lines, start, found = printed.splitlines(), 0, []
    for shown in excerpt.splitlines():
        if shown.strip() in ('...', ''):
            found.append(shown)
            continue
        match = _find(shown, lines[start:])
        if match is None:
            raise UserError(f'the output has no line like {shown!r}; it is:\n{printed}')
        number, line = match
        start += number + 1
        found.append(line)
    return '\n'.join(found)


def _find(shown: str, lines: list[str]) -> tuple[int, str] | None:
    """Return the number and the new text of the first line like one that the page shows.

    Lines with the same integers come first: that is the same epoch, with other losses.
    """
    parts = re.split(r'(\.\.\.|\d+(?:[.,:]\d+)*(?:e[+-]?\d+)?)', shown)
    for same_integers in (True, False):
        pattern = re.compile(''.join(_pattern(part, same_integers) for part in parts))
        for number, line in enumerate(lines):
            if match := pattern.fullmatch(line.rstrip()):
                groups = zip(parts, match.groups(), strict=True)
                return number, ''.join(old if old == '...' else now for old, now in groups)
    return None


def _pattern(part: str, same_integers: bool) -> str:
    """Return the expression for a part of a line: dots, a number or text."""
    if part == '...':
        return '(.*)'
    if part[:1].isdigit() and not (same_integers and part.isdigit()):
        return r'(\d[\d.,:e+-]*)'
    # Columns are as wide as their numbers.
    return '(' + re.sub(r'(\\ )+', ' +', re.escape(part)) + ')'


if __name__ == '__main__':
    sys.exit(main())
