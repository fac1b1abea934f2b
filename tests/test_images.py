"""The pictures in the docs: each is used, and diagrams follow the reader's colour scheme."""

import re
from pathlib import Path

import pytest
from manual import PAGES, ROOT, links

IMAGES = ROOT / 'docs' / 'images'
VARIABLES = re.compile(r'--([\w-]+): (#\w+)')


def test_every_picture_is_shown():
    shown = {Path(link).name for page in PAGES for link in links(page)}
    assert {file.name for file in IMAGES.iterdir()} <= shown


@pytest.mark.parametrize('name', sorted(file.name for file in IMAGES.glob('*.svg')))
def test_diagrams_have_a_light_and_a_dark_palette(name: str):
    """A page shows them as <img>, so they only get its colour scheme."""
    text = (IMAGES / name).read_text()
    light, dark = text.split('@media (prefers-color-scheme: dark)')
    light, dark = dict(VARIABLES.findall(light)), dict(VARIABLES.findall(dark))
    assert light.keys() == dark.keys() >= {'paper', 'ink'}
    assert light['paper'] == '#ffffff' and dark['paper'] != light['paper']
    # Every colour is one of these.
    assert set(re.findall(r'#[0-9a-f]{3,8}\b', text)) == {*light.values(), *dark.values()}
    assert '<title' in text and '<text' in text
