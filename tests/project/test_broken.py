"""Faults in a folder cause no traceback, and no image or object is lost silently."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.data.labels import Labels
from ptnt_mm.workbench.data.recognise import summary
from ptnt_mm.workbench.data.tree import Tree

from .broken import HARMLESS, PLANTED
from .made import read

NOTHING_REMAINS = {
    ('label_studio', 'cut'),
    ('label_studio', 'list'),
    ('label_studio', 'images is a dict'),
    ('cvat_shapes', 'cut'),
    ('via', 'cut'),
    ('via', 'list'),
}
"""Data sets with all labels in one file."""


def objects(labels: Labels) -> int:
    return sum(len(image.objects) for image in labels.images)


@pytest.fixture(scope='module')
def intact(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable], tuple[Path, Labels]]:
    """Create a data set and read it, once."""

    @cache
    def made(make: Callable) -> tuple[Path, Labels]:
        root = make(tmp_path_factory.mktemp(make.__name__))
        return root, read(root)

    return made


@pytest.mark.parametrize(
    ('make', 'name', 'spoil'),
    PLANTED,
    ids=[f'{make.__name__}-{name}' for make, name, _ in PLANTED],
)
def test_nothing_is_lost_in_silence(tmp_path: Path, intact, make, name: str, spoil):
    origin, whole = intact(make)
    root = shutil.copytree(origin, tmp_path / 'data')
    spoil(root)
    files = {file: file.read_bytes() for file in Tree(root).files}
    if (make.__name__, name) in NOTHING_REMAINS:
        with pytest.raises(UserError, match=f'{root}.*none of it can be used'):
            read(root)
        return
    labels = read(root)
    used = {image.path for image in labels.images}
    named = {problem.file for problem in labels.problems}
    assert set(Tree(root).images) <= used | named | labels.aside
    # One fault is no reason to drop the rest.
    assert len(labels.images) >= len(whole.images) - 1
    if (make.__name__, name) not in HARMLESS:
        assert labels.problems, 'it was not noticed'
        assert summary(labels)
    elif 'empty' not in name and 'mark' not in name and name != 'label missing':
        assert objects(labels) == objects(whole)
    assert {file: file.read_bytes() for file in Tree(root).files} == files
    assert not Path('/tmp/evil').exists()
