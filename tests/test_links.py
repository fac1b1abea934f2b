"""Links inside README and docs lead somewhere, and the site's contents name every page."""

from pathlib import Path

import pytest
from pages import PAGES, ROOT, anchors, blocks, links, name


@pytest.mark.parametrize('page', PAGES, ids=name)
def test_links_lead_somewhere(page: Path):
    for link in links(page):
        if '://' in link or link.startswith('mailto:'):
            continue
        path, _, anchor = link.partition('#')
        target = (page.parent / path).resolve() if path else page
        assert target.exists() and target.is_relative_to(ROOT), f'{name(page)}: {link} is dead'
        if anchor:
            assert anchor in anchors(target), f'{name(page)}: {link} is no heading'


def test_every_page_is_in_the_contents():
    contents = [b.text for page in PAGES for b in blocks(page) if b.language == '{toctree}']
    listed = {line for text in contents for line in text.split() if not line.startswith(':')}
    assert listed >= {page.stem for page in ROOT.glob('docs/*.md')} - {'index'}
