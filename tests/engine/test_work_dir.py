"""What a run leaves in its folder, and what may be done there again."""

import errno
import os
from pathlib import Path

import pytest
import torch
from mmengine.config import Config

from ptnt_mm.engine.work_dir import (
    RemoveHook,
    choose_work_dir,
    earlier_run,
    latest_checkpoint,
    require_fresh,
)
from ptnt_mm.utils.errors import UserError


def save(checkpoint: Path) -> Path:
    torch.save({}, checkpoint)
    return checkpoint


def _run(folder: Path, pointer: str) -> Path:
    checkpoint = save(folder / 'epoch_2.pth')
    (folder / 'last_checkpoint').write_text(pointer)
    (folder / '20260101_120000').mkdir()
    return checkpoint


def test_the_latest_checkpoint_is_found_whatever_the_pointer_says(tmp_path: Path):
    assert latest_checkpoint(tmp_path) is None
    checkpoint = _run(tmp_path, 'somewhere/else/epoch_2.pth')
    save(tmp_path / 'epoch_10.pth')
    assert latest_checkpoint(tmp_path) == checkpoint


@pytest.mark.parametrize('pointer', ['', 'epoch_99.pth', None])
def test_a_lost_pointer_does_not_lose_the_run(tmp_path: Path, pointer: str | None):
    _run(tmp_path, pointer or '')
    if pointer is None:
        (tmp_path / 'last_checkpoint').unlink()
    for name in ('epoch_10.pth', 'epoch_9.pth', 'best_coco_bbox_mAP_epoch_30.pth', 'mine.pth'):
        save(tmp_path / name)
    assert latest_checkpoint(tmp_path) == tmp_path / 'epoch_10.pth'


def test_a_folder_with_checkpoints_is_not_trained_over(tmp_path: Path):
    require_fresh(tmp_path)
    require_fresh(tmp_path / 'absent')
    _run(tmp_path, 'epoch_2.pth')
    with pytest.raises(UserError, match=r'epoch_2\.pth.*--resume.*--overwrite.*--work-dir'):
        require_fresh(tmp_path)


@pytest.mark.parametrize('pointer', ['ck_1.pth', '/elsewhere/run/epoch_1.pth'])
def test_a_run_is_known_by_its_pointer_too(tmp_path: Path, pointer: str):
    """Its checkpoints may have other names, by `filename_tmpl`, or another place, by `out_dir`."""
    (tmp_path / 'last_checkpoint').write_text(pointer)
    with pytest.raises(UserError, match=r'\(last_checkpoint\): continue it'):
        require_fresh(tmp_path)


def test_iterations_are_steps_too(tmp_path: Path):
    """Numbers are compared, and not names: 9,000 is less than 10,000."""
    for name in ('iter_10000.pth', 'iter_9000.pth', 'best_mIoU_iter_9000.pth'):
        save(tmp_path / name)
    assert latest_checkpoint(tmp_path) == tmp_path / 'iter_10000.pth'
    with pytest.raises(UserError, match=r'\(iter_10000\.pth\)'):
        require_fresh(tmp_path)
    assert len(earlier_run(tmp_path)) == 3
    (tmp_path / 'iter_10000.pth').write_bytes(b'cut off')
    assert latest_checkpoint(tmp_path) == tmp_path / 'iter_9000.pth'


def test_removing_an_earlier_run_leaves_all_else(tmp_path: Path):
    _run(tmp_path, 'epoch_2.pth')
    for name in ('notes.txt', 'mine.pth'):
        (tmp_path / name).touch()
    (tmp_path / 'predictions').mkdir()
    hook = RemoveHook(earlier_run(tmp_path))
    assert (tmp_path / 'epoch_2.pth').exists()
    hook.before_train(runner=None)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        'mine.pth',
        'notes.txt',
        'predictions',
    ]
    require_fresh(tmp_path)


def test_a_work_dir_that_cannot_be_made(tmp_path: Path):
    (tmp_path / 'file').touch()
    with pytest.raises(UserError, match='is a file.*another --work-dir'):
        choose_work_dir(Config(), tmp_path / 'file')
    with pytest.raises(UserError, match='cannot be written to'):
        choose_work_dir(Config(), tmp_path / 'file' / 'below')


@pytest.mark.parametrize('number', [errno.ENOSPC, errno.EDQUOT])
def test_a_work_dir_without_room(tmp_path: Path, monkeypatch, number: int):
    """An empty file can still be made there."""

    def full(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, 'fsync', full)
    with pytest.raises(UserError, match=f'{os.strerror(number)}.*make room.*another --work-dir'):
        choose_work_dir(Config(), tmp_path)
    assert not list(tmp_path.iterdir())
