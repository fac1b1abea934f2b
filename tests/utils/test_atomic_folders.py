"""Folders are written completely or not at all."""

import os
from pathlib import Path

import pytest

from ptnt_mm.utils.atomic_files import folder_written_atomically


def test_a_folder_appears_when_it_is_complete(tmp_path: Path):
    folder = tmp_path / 'new' / 'folder'
    with folder_written_atomically(folder) as building:
        (building / 'file').write_text('whole')
        assert not folder.exists()
    assert (folder / 'file').read_text() == 'whole'
    assert list(folder.parent.iterdir()) == [folder]


def test_a_folder_takes_the_place_of_another(tmp_path: Path):
    folder = tmp_path / 'folder'
    folder.mkdir()
    (folder / 'old').touch()
    with folder_written_atomically(folder) as building:
        (building / 'new').touch()
        assert (folder / 'old').exists()
    assert [path.name for path in folder.iterdir()] == ['new']
    assert list(tmp_path.iterdir()) == [folder]


def test_a_failure_leaves_the_old_folder(tmp_path: Path):
    folder = tmp_path / 'folder'
    folder.mkdir()
    (folder / 'old').touch()
    with pytest.raises(ZeroDivisionError), folder_written_atomically(folder) as building:
        (building / 'half').touch()
        raise ZeroDivisionError
    assert [path.name for path in folder.iterdir()] == ['old']
    assert list(tmp_path.iterdir()) == [folder]


def test_remains_of_a_killed_process_are_not_included(tmp_path: Path):
    left = tmp_path / f'.folder.partial-{os.getpid()}'
    left.mkdir()
    (left / 'half').touch()
    with folder_written_atomically(tmp_path / 'folder') as building:
        assert not list(building.iterdir())
    assert [path.name for path in tmp_path.iterdir()] == ['folder']


@pytest.mark.parametrize('behind_the_first', [False, True])
@pytest.mark.parametrize('failure', [KeyboardInterrupt, OSError])
def test_a_failure_between_the_renames_leaves_the_old_folder(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    behind_the_first: bool,
    failure: type[BaseException],
):
    folder = tmp_path / 'folder'
    folder.mkdir()
    (folder / 'old').touch()
    rename, calls = os.replace, []

    def interrupted(source: Path, target: Path) -> None:
        calls.append(source)
        if not behind_the_first and len(calls) == 2:
            raise failure
        rename(source, target)
        if behind_the_first and len(calls) == 1:
            raise failure

    monkeypatch.setattr(os, 'replace', interrupted)
    with pytest.raises(failure), folder_written_atomically(folder) as building:
        (building / 'new').touch()
    assert [path.name for path in folder.iterdir()] == ['old']
    assert list(tmp_path.iterdir()) == [folder]


def test_what_the_system_refuses_is_raised(tmp_path: Path):
    (tmp_path / 'file').touch()
    with pytest.raises(OSError), folder_written_atomically(tmp_path / 'file' / 'below'):
        pass
