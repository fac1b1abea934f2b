"""The content of a work dir, and starting over in it."""

import errno
import os
from pathlib import Path

import attacks
import pytest
import torch
from mmengine.config import Config
from toy import quick, toy_config

from ptnt_mm import api
from ptnt_mm.hooks.run_checkpoints import (
    best_checkpoint,
    describe_last_checkpoint,
    latest_checkpoint,
    read_latest_checkpoint,
    require_fresh,
)
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.runner import build_runner
from ptnt_mm.workbench.engine.work_dir import checkpoint_to_use, create_work_dir


def save(checkpoint: Path) -> Path:
    torch.save({}, checkpoint)
    return checkpoint


def _run(folder: Path, pointer: str) -> Path:
    checkpoint = save(folder / 'epoch_2.pth')
    (folder / 'last_checkpoint').write_text(pointer)
    (folder / '20260101_120000').mkdir()
    return checkpoint


def test_the_latest_checkpoint_is_found_whatever_the_pointer(tmp_path: Path):
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
    with pytest.raises(UserError, match=r'epoch_2\.pth.*`resume=auto`.*`overwrite=.*`work_dir`'):
        require_fresh(tmp_path)


@pytest.mark.parametrize('pointer', ['ck_1.pth', '/elsewhere/run/epoch_1.pth'])
def test_a_run_is_known_by_its_pointer_too(tmp_path: Path, pointer: str):
    """`filename_tmpl` may rename its checkpoints, and `out_dir` may move them."""
    (tmp_path / 'last_checkpoint').write_text(pointer)
    with pytest.raises(UserError, match=r'\(last_checkpoint\): continue it'):
        require_fresh(tmp_path)


def test_older_checkpoints_in_an_out_dir_are_found(tmp_path: Path):
    run, disk = tmp_path / 'run', tmp_path / 'disk' / 'run'
    run.mkdir()
    disk.mkdir(parents=True)
    (run / 'last_checkpoint').write_text(str(disk / 'epoch_2.pth'))
    older, best = save(disk / 'epoch_1.pth'), save(disk / 'best_score_epoch_1.pth')
    assert latest_checkpoint(run) == older and best_checkpoint(run) == best
    # A folder of another name is of another run.
    (run / 'last_checkpoint').write_text(str(disk.rename(disk.with_name('other')) / 'epoch_2.pth'))
    assert latest_checkpoint(run) is None


def _zip_field(at: int, value: int, local: int):
    """Change a field of every entry, in the zip directory (``at``) and before its bytes."""

    def spoil(path: Path) -> None:
        content = bytearray(path.read_bytes())
        for mark, offset in ((b'PK\x01\x02', at), (b'PK\x03\x04', local)):
            found = -1
            while (found := content.find(mark, found + 1)) >= 0:
                content[found + offset : found + offset + 2] = value.to_bytes(2, 'little')
        path.write_bytes(content)

    return spoil


def _replaced(make):
    def spoil(path: Path) -> None:
        path.unlink()
        make(path)

    return spoil


_SPOILT = {
    'compression method 99': _zip_field(10, 99, 8),
    'encryption': _zip_field(8, 1, 6),
    'length of names': _zip_field(28, 60_000, 26),
    'pipe': _replaced(os.mkfifo),
    'device': _replaced(lambda path: path.symlink_to('/dev/zero')),
    'own memory': _replaced(lambda path: path.symlink_to('/proc/self/mem')),
    'folder': _replaced(Path.mkdir),
    'dangling link': _replaced(lambda path: path.symlink_to('nowhere')),
    'empty': lambda path: path.write_bytes(b''),
    'cut off': lambda path: path.write_bytes(path.read_bytes()[:-100]),
    'weights only': lambda path: torch.save({'state_dict': {'w': torch.ones(1)}}, path),
    'an attack': lambda path: attacks.write_zip(path, attacks.os_system(path / 'canary')),
}


def _resumable(path: Path) -> Path:
    torch.save({'meta': {'epoch': 1}, 'state_dict': {'w': torch.ones(1)}, 'optimizer': {}}, path)
    return path


@pytest.mark.parametrize('spoil', _SPOILT.values(), ids=_SPOILT)
def test_an_older_checkpoint_is_taken_whatever_is_wrong_with_the_newest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, spoil
):
    intact, newest = (_resumable(tmp_path / f'epoch_{number}.pth') for number in (1, 9))
    (tmp_path / 'last_checkpoint').write_text(str(newest))
    spoil(newest)
    path, content = read_latest_checkpoint(tmp_path)
    assert path == intact and content['meta'] == {'epoch': 1}
    (line,) = caplog.messages
    assert str(newest) in line and line.count(str(newest)) == 1 and len(line) > len(str(newest))
    assert latest_checkpoint(tmp_path) in (intact, newest)


def test_checkpoints_that_are_all_damaged_are_not_silently_started_over(tmp_path: Path):
    assert read_latest_checkpoint(tmp_path) == (None, None)
    for number in (1, 2):
        (tmp_path / f'epoch_{number}.pth').write_bytes(b'cut off')
    with pytest.raises(UserError, match='none of its checkpoints.*`overwrite=True`'):
        read_latest_checkpoint(tmp_path)


@pytest.mark.parametrize(
    'pointer', [b'\xff\xfe\xff', b'x' * 5000, b'epoch_1.pth\0', b'..', b'/', b'\n' * 10_000]
)
def test_invalid_pointer_is_ignored(tmp_path: Path, pointer: bytes):
    intact = _resumable(tmp_path / 'epoch_1.pth')
    (tmp_path / 'last_checkpoint').write_bytes(pointer)
    assert read_latest_checkpoint(tmp_path)[0] == latest_checkpoint(tmp_path) == intact


def test_a_copied_run_continues_from_its_own_checkpoint(tmp_path: Path):
    """Another run may be where the copied one was, and have a checkpoint of the same name."""
    former, copied = tmp_path / 'former', tmp_path / 'copied'
    for folder in (former, copied):
        folder.mkdir()
        own = _resumable(folder / 'epoch_1.pth')
        (folder / 'last_checkpoint').write_text(str(former / 'epoch_1.pth'))
    assert read_latest_checkpoint(copied)[0] == own
    own.unlink()
    assert read_latest_checkpoint(copied)[0] == latest_checkpoint(copied) == former / 'epoch_1.pth'


def test_a_run_whose_only_checkpoint_is_gone_is_not_silently_started_over(tmp_path: Path):
    (tmp_path / 'last_checkpoint').write_text('/unmounted/run/epoch_3.pth')
    with pytest.raises(UserError, match=r'/unmounted/run/epoch_3\.pth: start over.*`resume=PATH`'):
        read_latest_checkpoint(tmp_path)


@pytest.mark.parametrize('make', [os.mkfifo, os.mkdir, lambda path: path.symlink_to('/dev/zero')])
def test_pointer_that_is_not_a_file_is_ignored(tmp_path: Path, make):
    intact = _resumable(tmp_path / 'epoch_1.pth')
    make(tmp_path / 'last_checkpoint')
    assert read_latest_checkpoint(tmp_path)[0] == latest_checkpoint(tmp_path) == intact


def start_over(work_dir: Path, **how: object) -> None:
    config = quick(toy_config(work_dir, 1, experiment_name=str(work_dir)))
    api.train(config, overwrite=True, **how)


def test_a_link_to_a_folder_is_removed_and_the_folder_kept(tmp_path: Path):
    kept, link = tmp_path / 'kept', tmp_path / 'run' / 'epoch_9.pth'
    kept.mkdir()
    link.parent.mkdir()
    link.symlink_to(kept)
    start_over(link.parent)
    assert kept.is_dir() and not link.is_symlink()


def test_iterations_are_steps_too(tmp_path: Path):
    """Numbers are compared, not names: 9,000 is less than 10,000."""
    for name in ('iter_10000.pth', 'iter_9000.pth', 'best_mIoU_iter_9000.pth'):
        save(tmp_path / name)
    assert latest_checkpoint(tmp_path) == tmp_path / 'iter_10000.pth'
    with pytest.raises(UserError, match=r'\(iter_10000\.pth\)'):
        require_fresh(tmp_path)
    (tmp_path / 'iter_10000.pth').write_bytes(b'cut off')
    assert latest_checkpoint(tmp_path) == tmp_path / 'iter_9000.pth'


def test_removing_an_earlier_run_leaves_all_else(tmp_path: Path):
    _run(tmp_path, 'epoch_2.pth')
    for name in ('notes.txt', 'mine.pth'):
        (tmp_path / name).touch()
    (tmp_path / 'predictions').mkdir()
    start_over(tmp_path)
    own = {'mine.pth', 'notes.txt', 'predictions'}
    left = {path.name for path in tmp_path.iterdir()}
    assert left >= own | {'epoch_1.pth'} and not left & {'epoch_2.pth', '20260101_120000'}
    assert latest_checkpoint(tmp_path) == tmp_path / 'epoch_1.pth'


def test_what_a_run_starts_from_is_not_removed(tmp_path: Path):
    _run(tmp_path, 'epoch_2.pth')
    with pytest.raises(UserError, match=r'would remove .*epoch_2\.pth'):
        start_over(tmp_path, load_from=tmp_path / 'epoch_2.pth')
    assert (tmp_path / 'epoch_2.pth').exists()


def test_a_work_dir_that_cannot_be_made(tmp_path: Path):
    (tmp_path / 'file').touch()
    with pytest.raises(UserError, match='`work_dir=.* is a file'):
        create_work_dir(Config(), tmp_path / 'file')
    with pytest.raises(UserError, match='`work_dir=.*/file/below`: .*/file is a file'):
        create_work_dir(Config(), tmp_path / 'file' / 'below')


@pytest.mark.parametrize('number', [errno.ENOSPC, errno.EDQUOT])
def test_a_work_dir_without_room(tmp_path: Path, monkeypatch, number: int):
    """An empty file can still be made there."""

    def full(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, 'fsync', full)
    with pytest.raises(UserError, match=f'{os.strerror(number)}.*make room.*another `work_dir`'):
        create_work_dir(Config(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_config_without_a_file_has_no_default_work_dir():
    for choose in (create_work_dir, checkpoint_to_use):
        with pytest.raises(UserError, match='not read from a file'):
            choose(Config(), None)


def test_a_message_names_the_checkpoint_to_continue_from(tmp_path: Path):
    described, again = describe_last_checkpoint(tmp_path)
    assert str(tmp_path) in described and again == 'start again'
    checkpoint = save(tmp_path / 'epoch_2.pth')
    described, again = describe_last_checkpoint(tmp_path)
    assert str(checkpoint) in described and again == 'continue'


# The hosts' configs have a name for it.
@pytest.mark.parametrize('visualizer', [None, dict(type='Visualizer', name='visualizer')])
def test_two_runs_of_one_second_keep_their_own_logs(tmp_path: Path, visualizer: dict | None):
    settings = dict(experiment_name='twin', visualizer=visualizer)
    first, second = (
        build_runner(ConfigView(quick(toy_config(tmp_path / name, **settings)))) for name in 'ab'
    )
    assert first.cfg.visualizer == second.cfg.visualizer == visualizer
    assert first.timestamp < second.timestamp
    assert first.visualizer is not second.visualizer and first.message_hub is not second.message_hub
