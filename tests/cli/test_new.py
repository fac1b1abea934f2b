"""``ptnt new`` says every few seconds what it does."""

import threading
from pathlib import Path

import PIL.Image
import pytest

from ptnt_mm.workbench.cli.main import run


def test_it_shows_that_it_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The thread that prints is running while images are read."""
    names, opened = [], PIL.Image.open
    for name in ('a', 'b'):
        folder = tmp_path / 'photos' / name
        folder.mkdir(parents=True)
        for i in range(4):
            PIL.Image.new('RGB', (40, 40), (9 * i, 99, 50)).save(folder / f'{i}.png')

    def spy(*args, **options):
        names.extend(thread.name for thread in threading.enumerate())
        return opened(*args, **options)

    monkeypatch.setattr(PIL.Image, 'open', spy)
    words = [str(tmp_path / 'photos'), str(tmp_path / 'project'), '--size', '32', '--epochs', '1']
    run('new', words)
    assert any('(beat)' in name for name in names)
