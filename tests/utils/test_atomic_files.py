"""Files are written whole or not at all."""

from pathlib import Path

import pytest

from ptnt_mm.utils.atomic_files import check_new, written_whole
from ptnt_mm.utils.errors import UserError, exit_status


def test_a_file_appears_when_it_is_whole(tmp_path: Path):
    file = tmp_path / 'new' / 'file.txt'
    with written_whole(file) as partial:
        partial.write_text('whole')
        assert not file.exists()
    assert file.read_text() == 'whole'
    assert list(file.parent.iterdir()) == [file]


def test_a_failure_leaves_the_old_file(tmp_path: Path):
    file = tmp_path / 'file.txt'
    file.write_text('old')
    with pytest.raises(ZeroDivisionError), written_whole(file) as partial:
        partial.write_text('half')
        raise ZeroDivisionError
    assert file.read_text() == 'old'
    assert list(tmp_path.iterdir()) == [file]


def test_what_the_system_refuses_is_a_clear_error(tmp_path: Path):
    (tmp_path / 'file').touch()
    refused = pytest.raises(UserError, match='cannot be written')
    with refused, written_whole(tmp_path / 'file' / 'below'):
        pass


def test_an_existing_file_is_not_replaced_unasked(tmp_path: Path):
    file = tmp_path / 'file'
    check_new(file, overwrite=False)
    file.touch()
    check_new(file, overwrite=True)
    with pytest.raises(UserError, match='exists: choose another name, or give --overwrite'):
        check_new(file, overwrite=False)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path):
    with pytest.raises(UserError, match='there is no folder .*nowhere'):
        check_new(tmp_path / 'nowhere' / 'file', overwrite=False)


def test_exit_status(capsys: pytest.CaptureFixture):
    def fail():
        raise UserError('mend this')

    def stop():
        raise KeyboardInterrupt

    assert [exit_status(command) for command in (lambda: None, lambda: 3, fail, stop)] == [
        0,
        3,
        1,
        130,
    ]
    assert capsys.readouterr().err == 'error: mend this\n\nStopped.\n'
