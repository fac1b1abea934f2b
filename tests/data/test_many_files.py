"""Checking many files by listing their folders, or on several threads."""

from pathlib import Path

from ptnt_mm.workbench.data.many_files import Folders, on_threads


def test_folders_are_listed_once(tmp_path: Path):
    (tmp_path / 'a.png').touch()
    folders = Folders()
    assert folders.missing([tmp_path / 'a.png', tmp_path / 'b.png']) == [tmp_path / 'b.png']
    (tmp_path / 'b.png').touch()
    assert folders.missing([tmp_path / 'b.png']) == [tmp_path / 'b.png']
    assert folders.instead_of(tmp_path / 'A.jpg') == 'a.png'
    assert folders.instead_of(tmp_path / 'c.jpg') == ''


def test_threads_keep_the_order():
    assert list(on_threads(lambda number: number**2, range(100), 'Squaring')) == [
        number**2 for number in range(100)
    ]
