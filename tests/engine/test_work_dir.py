"""What a run leaves in its folder, and what may be done there again."""

from pathlib import Path

import pytest

from ptnt_mm.engine.work_dir import earlier_run, latest_checkpoint, remove, require_fresh
from ptnt_mm.errors import UserError


def _run(folder: Path, pointer: str) -> Path:
    checkpoint = folder / 'epoch_2.pth'
    checkpoint.touch()
    (folder / 'last_checkpoint').write_text(pointer)
    (folder / '20260101_120000').mkdir()
    return checkpoint


def test_the_latest_checkpoint_is_found_even_if_the_pointer_was_relative(tmp_path: Path):
    assert latest_checkpoint(tmp_path) is None
    checkpoint = _run(tmp_path, 'somewhere/else/epoch_2.pth')
    assert latest_checkpoint(tmp_path) == checkpoint
    checkpoint.unlink()
    assert latest_checkpoint(tmp_path) is None


def test_a_folder_with_checkpoints_is_not_trained_over(tmp_path: Path):
    require_fresh(tmp_path)
    require_fresh(tmp_path / 'absent')
    _run(tmp_path, 'epoch_2.pth')
    with pytest.raises(UserError, match=r'epoch_2\.pth.*--resume.*--overwrite.*--work-dir'):
        require_fresh(tmp_path)


def test_removing_an_earlier_run_leaves_all_else(tmp_path: Path):
    _run(tmp_path, 'epoch_2.pth')
    (tmp_path / 'notes.txt').touch()
    (tmp_path / 'predictions').mkdir()
    remove(earlier_run(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ['notes.txt', 'predictions']
    require_fresh(tmp_path)
