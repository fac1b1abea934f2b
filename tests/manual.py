"""The pages of the documentation: their blocks of code, links and headings."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from repository import ROOT

PAGES = sorted([*ROOT.glob('*.md'), *ROOT.glob('docs/**/*.md')])

_BLOCK = re.compile(
    r'^(?P<indent> *)(?:<!-- (?P<mark>(?:(?!-->).)+) -->\n *)?'
    r'```(?P<language>\S*)\n(?P<text>.*?)^ *```$'
    r'(?:\n\n```text\n(?P<output>.*?)^```$)?',
    re.DOTALL | re.MULTILINE,
)
_INDENTED = re.compile(r'(?<=\n\n)    (?![ *-])', re.MULTILINE)
_LINK = re.compile(r'\]\(([^()\s]+)\)|\bsrc="([^"]+)"|\bhref="([^"]+)"')
_HEADING = re.compile(r'^#+ (.+)$', re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language and text, and the text directly around it.

    Attributes:
        mark: The words of the comment above it.
        output: The block of text below it, which is what it prints.
    """

    language: str
    text: str
    mark: str | None
    output: str | None

    @property
    def is_code(self) -> bool:
        return self.language in ('shell', 'python')

    @property
    def reason(self) -> str | None:
        """Why the tests do not run it, in ``<!-- not run: REASON -->`` above it."""
        return self.mark.removeprefix('not run: ') if self.mark else None

    def commands(self) -> Iterator[list[str]]:
        """The words of each command of a shell."""
        return commands(self.text)


def commands(text: str) -> Iterator[list[str]]:
    """The words of each command, without variables that are set for it."""
    for line in text.replace('\\\n', ' ').splitlines():
        words = shlex.split(line, comments=True)
        while words and re.match(r'[A-Z_]+=', words[0]):
            words = words[1:]
        # Commands after a pipe are those of other programs.
        if words := list(takewhile(lambda word: word not in ('|', '\\|'), words)):
            yield words


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page, in its order."""
    found = []
    for match in _BLOCK.finditer(page.read_text()):
        indent = match['indent']
        lines = (line.removeprefix(indent) for line in match['text'].splitlines())
        found.append(Block(match['language'], '\n'.join(lines), match['mark'], match['output']))
    return found


def prose(page: Path) -> str:
    """A page without its blocks."""
    return _BLOCK.sub('', page.read_text())


def has_indented_blocks(page: Path) -> bool:
    """Whether a page has indented code, which has no language."""
    return bool(_INDENTED.search(prose(page)))


def inline_commands(page: Path) -> Iterator[list[str]]:
    """Commands in the sentences of a page."""
    for code in re.findall(r'`((?:python|make|torchrun|ptnt(?! [A-Z|])) [^`]+)`', prose(page)):
        yield from commands(' '.join(code.split()))


def links(page: Path) -> list[str]:
    """The targets of a page's links and pictures."""
    return [next(filter(None, match.groups())) for match in _LINK.finditer(prose(page))]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings on GitHub and the site."""
    headings = (re.sub(r'[`*]|\]\([^)]*\)|\[', '', h) for h in _HEADING.findall(prose(page)))
    return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}
