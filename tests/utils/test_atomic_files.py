"""Files are written completely or not at all."""

import os
from pathlib import Path

import pytest

from ptnt_mm.utils.atomic_files import (
    check_new,
    files_written_atomically,
    fitted_name,
    folder_written_atomically,
    remove_partials,
    temporary_name,
    write_atomically,
)
from ptnt_mm.utils.errors import UserError


@pytest.mark.parametrize('content', ['wörds', 'wörds'.encode()])
def test_a_file_appears_when_it_is_complete(tmp_path: Path, monkeypatch, content: str | bytes):
    file = tmp_path / 'new' / 'file.txt'
    replace, seen = os.replace, []

    def watched(source: Path, target: Path) -> None:
        seen.append((source.read_text(encoding='utf-8'), target.exists()))
        replace(source, target)

    monkeypatch.setattr(os, 'replace', watched)
    write_atomically(file, content)
    assert seen == [('wörds', False)]
    assert file.read_text(encoding='utf-8') == 'wörds'
    assert list(file.parent.iterdir()) == [file]


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch):
    file = tmp_path / 'file.txt'
    file.write_text('old')

    def full(number: int) -> None:
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(os, 'fsync', full)
    with pytest.raises(UserError, match='file.txt cannot be written: No space left'):
        write_atomically(file, 'half')
    assert file.read_text() == 'old'
    assert list(tmp_path.iterdir()) == [file]


def test_unwritable_file_is_refused(tmp_path: Path):
    (tmp_path / 'file').touch()
    with pytest.raises(UserError, match='cannot be written'):
        write_atomically(tmp_path / 'file' / 'below', '')


def test_an_existing_file_is_not_replaced_unasked(tmp_path: Path):
    file = tmp_path / 'file'
    check_new(file, overwrite=False)
    file.touch()
    check_new(file, overwrite=True)
    with pytest.raises(UserError, match='exists: choose another name, or pass `overwrite=True`'):
        check_new(file, overwrite=False)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(UserError, match='there is no folder .*nowhere'):
        check_new(tmp_path / 'nowhere' / 'file', overwrite=False)


def test_a_folder_is_not_replaced_by_a_file(tmp_path: Path):
    with pytest.raises(UserError, match='is a folder: choose another name'):
        check_new(tmp_path, overwrite=True)


def test_files_take_their_places_together(tmp_path: Path):
    weights, model = tmp_path / 'x.bin', tmp_path / 'x.xml'
    model.write_text('earlier')
    with files_written_atomically(weights, model) as folder:
        for file in (weights, model):
            (folder / file.name).write_text(file.name)
        assert model.read_text() == 'earlier' and not weights.exists()
        remove_partials(tmp_path)
    assert [file.read_text() for file in (weights, model)] == ['x.bin', 'x.xml']
    with pytest.raises(KeyboardInterrupt), files_written_atomically(weights, model) as folder:
        (folder / 'x.xml').write_text('half')
        raise KeyboardInterrupt
    assert sorted(path.name for path in tmp_path.iterdir()) == ['x.bin', 'x.xml']
    assert model.read_text() == 'x.xml'


def test_files_in_a_folder_that_is_gone(tmp_path: Path):
    file = tmp_path / 'gone' / 'x.onnx'
    with pytest.raises(UserError, match='x.onnx cannot be written'), files_written_atomically(file):
        pass


def test_text_that_is_not_utf_8(tmp_path: Path):
    (tmp_path / 'file').write_text('whole')
    with pytest.raises(UserError, match=r'file cannot be written: .* not UTF-8, near .*b\\udce9'):
        write_atomically(tmp_path / 'file', '{"file": "b\udce9.jpg"}')
    assert (tmp_path / 'file').read_text() == 'whole'


LONGEST = [c * (255 // len(os.fsencode(c))) for c in ('x', 'ä', '大', '\udce4')]


@pytest.mark.parametrize('name', LONGEST)
def test_names_as_long_as_the_system_allows(tmp_path: Path, name: str):
    write_atomically(tmp_path / name, 'whole')
    with folder_written_atomically(tmp_path / name[::-1][1:]) as building:
        (building / 'file').touch()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize('name', LONGEST)
def test_names_that_are_too_long_are_cut_so_that_they_differ(tmp_path: Path, name: str):
    first, second = (fitted_name(f'{name}{end}.png') for end in 'ab')
    assert first != second
    for fitted in (first, second):
        write_atomically(tmp_path / fitted, '')
        assert fitted.startswith(name[:20].rstrip('\udce4')) and fitted.endswith('.png')
    assert fitted_name(name) == name


def test_long_names_have_temporary_names_of_their_own(tmp_path: Path):
    """Two that differ at their ends may be written at the same time."""
    first, second = (temporary_name(tmp_path / ('x' * 200 + end), 'partial') for end in 'ab')
    assert first != second
    write_atomically(first, 'left by a killed process')
    remove_partials(tmp_path)
    assert not list(tmp_path.iterdir())
