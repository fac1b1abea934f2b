"""Folders are written whole or not at all."""

from pathlib import Path

import pytest

from ptnt_mm.folders import folder_written_whole


def test_a_folder_appears_when_it_is_whole(tmp_path: Path):
    folder = tmp_path / 'new' / 'folder'
    with folder_written_whole(folder) as building:
        (building / 'file').write_text('whole')
        assert not folder.exists()
    assert (folder / 'file').read_text() == 'whole'
    assert list(folder.parent.iterdir()) == [folder]


def test_a_folder_takes_the_place_of_another(tmp_path: Path):
    folder = tmp_path / 'folder'
    folder.mkdir()
    (folder / 'old').touch()
    with folder_written_whole(folder) as building:
        (building / 'new').touch()
        assert (folder / 'old').exists()
    assert [path.name for path in folder.iterdir()] == ['new']
    assert list(tmp_path.iterdir()) == [folder]


def test_a_failure_leaves_the_old_folder(tmp_path: Path):
    folder = tmp_path / 'folder'
    folder.mkdir()
    (folder / 'old').touch()
    with pytest.raises(ZeroDivisionError), folder_written_whole(folder) as building:
        (building / 'half').touch()
        raise ZeroDivisionError
    assert [path.name for path in folder.iterdir()] == ['old']
    assert list(tmp_path.iterdir()) == [folder]


def test_what_the_system_refuses_is_raised(tmp_path: Path):
    (tmp_path / 'file').touch()
    with pytest.raises(OSError), folder_written_whole(tmp_path / 'file' / 'below'):
        pass
