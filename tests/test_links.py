"""Links work; the contents list every page, and the config reference every class."""

import re
from importlib import import_module
from pathlib import Path

import pytest
from manual import PAGES, ROOT, anchors, blocks, links, name, prose


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


def test_the_readmes_say_the_same():
    """As far as a test can check: the same code, links and structure."""
    english, chinese = ROOT / 'README.md', ROOT / 'README.zh-CN.md'
    assert blocks(english) == blocks(chinese)
    assert set(links(english)) - {chinese.name} == set(links(chinese)) - {english.name}
    assert prose(english).count('\n|') == prose(chinese).count('\n|')


def test_pages_that_the_code_names_are_there():
    for file in (f for top in ('ptnt_mm', 'tests', 'tools') for f in ROOT.glob(f'{top}/**/*.py')):
        for page, anchor in re.findall(r'\b(docs/[\w/]+\.md)(?:#([\w-]+))?', file.read_text()):
            assert (ROOT / page).is_file(), f'{file.relative_to(ROOT)}: there is no {page}'
            assert not anchor or anchor in anchors(ROOT / page), f'{page} has no #{anchor}'


def test_functions_that_the_code_names_by_their_module_are_there():
    files = list(ROOT.glob('ptnt_mm/**/*.py'))
    names = ('.'.join(file.relative_to(ROOT).with_suffix('').parts) for file in files)
    modules = {each.removesuffix('.__init__') for each in names}
    words = {word for module in modules for word in module.split('.')}
    for file in files:
        for path, word in re.findall(r'`~?((?:\w+\.)*\w+)\.(\w+)`', file.read_text()):
            if not words.issuperset(path.split('.')) or word in (
                'html',
                'json',
                'py',
                'txt',
                'yaml',
            ):
                continue
            owners = [module for module in modules if f'.{module}'.endswith(f'.{path}')]
            found = (hasattr(import_module(owner), word) for owner in owners)
            is_module = any(f'{owner}.{word}' in modules for owner in owners)
            assert is_module or any(found), f'{file}: there is no {path}.{word}'


def test_every_page_is_in_the_contents_once():
    listed = [
        page.parent / f'{line}.md'
        for page in PAGES
        for block in blocks(page)
        if block.language == '{toctree}'
        for line in block.text.splitlines()
        if not line.startswith(':')
    ]
    assert sorted(listed) == sorted({*ROOT.glob('docs/**/*.md')} - {ROOT / 'docs' / 'index.md'})


def test_every_class_that_a_config_can_name_is_in_the_reference():
    source = '\n'.join(file.read_text() for file in ROOT.glob('ptnt_mm/**/*.py'))
    registered = re.findall(r'\.register_module\(\)\nclass (\w+)', source)
    page = (ROOT / 'docs' / 'config_reference.md').read_text()
    assert set(registered) <= set(re.findall(r'autoclass:: [\w.]+\.(\w+)', page))


@pytest.mark.parametrize('page', ['README.md', 'README.zh-CN.md', 'docs/index.md'])
def test_first_pages_begin_with_installing(page: str):
    first = next(block for block in blocks(ROOT / page) if block.is_code)
    assert 'pip install' in first.text
