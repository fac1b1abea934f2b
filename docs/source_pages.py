"""Pages with the files of the repository that the pages of the site link to.

Sphinx would offer these files as downloads. GitHub shows them, and so does the site.
"""

from collections.abc import Iterator
from pathlib import Path

from docutils.nodes import document, reference
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.addnodes import download_reference
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[1]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    # Before Sphinx collects the files to download.
    app.connect('doctree-read', link, priority=100)
    app.connect('html-collect-pages', pages)
    return {'parallel_read_safe': False}


def link(app: Sphinx, tree: document) -> None:
    """Let a link to a text file open its page."""
    for node in list(tree.findall(download_reference)):
        file = (Path(app.srcdir) / node['reftarget'].lstrip('/')).resolve()
        if not (file.is_file() and _language(file)):
            continue
        page = f'source/{file.relative_to(ROOT)}'
        address = app.builder.get_relative_uri(app.env.docname, page)
        shown = reference('', '', *node.children, refuri=address, internal=True)
        node.replace_self(shown)
        app.env.source_files = {*getattr(app.env, 'source_files', ()), page}


def pages(app: Sphinx) -> Iterator[tuple[str, dict, str]]:
    """Yield each page: its name, its content, its template."""
    for page in sorted(getattr(app.env, 'source_files', ())):
        name = page.partition('/')[2]
        text = (ROOT / name).read_text(encoding='utf-8')
        code = app.builder.highlighter.highlight_block(text, _language(ROOT / name))
        yield page, dict(title=name, body=f'<h1>{name}</h1>\n{code}'), 'page.html'


def _language(file: Path) -> str:
    """The language of a text file, or an empty string for others."""
    try:
        return get_lexer_for_filename(file.name).aliases[0]
    except ClassNotFound:
        return ''
