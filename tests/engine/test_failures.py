"""System failures during a run are explained in one line."""

import errno
import io
import logging
import os
import re
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
import torch
from mmengine.runner import Runner, loops
from torch.utils.data import get_worker_info
from toy import ToyModel, ToyNoise, quick, toy_config, toy_iterations, train

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.failures import (
    failed_test_explained,
    failures_explained,
)
from ptnt_mm.workbench.engine.runner import build_runner

QUIET = logging.getLogger('quiet')


@pytest.mark.parametrize(
    ('error', 'names'),
    [
        (OSError(errno.EROFS, 'Read-only', '/x/1.log'), ['/x/1.log', 'no complete checkpoint']),
        (RuntimeError('DataLoader worker (pid 12) is killed by signal: Killed. '), ['num_workers']),
        (OSError(errno.ESTALE, 'Stale file handle', '/x/1.jpg'), ['/x/1.jpg']),
    ],
)
def test_a_failure_of_the_system_names_how_to_continue(
    tmp_path: Path, error: Exception, names: list[str]
):
    """tests/config/test_causes.py lists the other failures of the system."""
    with pytest.raises(UserError) as caught, failures_explained(QUIET, tmp_path):
        raise error
    assert all(name in str(caught.value) for name in [*names, '`resume`'])


def test_a_failed_test_ends_in_one_line(caplog: pytest.LogCaptureFixture):
    with pytest.raises(UserError) as said, failed_test_explained(logging.getLogger()):
        raise AssertionError('Results do not correspond to current coco set\nmore')
    assert 'Results do not correspond' in str(said.value) and '\n' not in str(said.value)
    assert 'Traceback' in caplog.text
    with pytest.raises(UserError, match=r'^clear$'), failed_test_explained(logging.getLogger()):
        raise UserError('clear')
    of_worker = UserError('Caught UserError in DataLoader worker process 0.\nUserError: a.jpg\n')
    with pytest.raises(UserError, match='^[^\n]* a.jpg'), failed_test_explained(QUIET):
        raise of_worker


@pytest.mark.parametrize(
    ('error', 'names'),
    [
        (OSError(errno.ENOSPC, 'No space left', '/x/all.pkl'), ['/x/all.pkl', 'full']),
        (FileNotFoundError(errno.ENOENT, 'No such file', '/x/1.jpg'), ['/x/1.jpg', 'restore']),
        (RuntimeError('DataLoader worker (pid 12) is killed by signal: Killed. '), ['num_workers']),
        (
            torch.OutOfMemoryError('CUDA out of memory. Tried'),
            ['GPU', 'test_dataloader.batch_size'],
        ),
    ],
)
def test_a_test_is_explained_as_a_run_is_but_not_resumed(error: Exception, names: list[str]):
    class Loader:
        dataset = ()

        def __iter__(self):
            raise error

    loop = SimpleNamespace(runner=MagicMock(), dataloader=Loader(), test_loss={})
    with pytest.raises(UserError) as said, failed_test_explained(QUIET):
        loops.TestLoop.run(loop)
    assert all(name in str(said.value) for name in names)
    assert not {'resume', 'train_dataloader', 'accumulative_counts'} & {
        word for word in re.findall(r'\w+', str(said.value))
    }


def test_the_log_keeps_the_traceback(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    with pytest.raises(UserError), failures_explained(logging.getLogger('kept'), tmp_path):
        raise OSError(errno.ENOSPC, 'No space left on device')
    assert 'What failed:\nTraceback (most recent call last)' in caplog.text


def test_data_removed_during_training_is_explained(tmp_path: Path, monkeypatch):
    """As in validation, whose images are not skipped; torch keeps only the text of the error."""

    def gone(self, results: dict) -> dict:
        raise FileNotFoundError(errno.ENOENT, 'No such file or directory', 'data/val/1.jpg')

    monkeypatch.setattr(ToyNoise, '__call__', gone)
    stopped = pytest.raises(UserError, match="^No such file or directory: 'data/val/1.jpg'")
    with stopped as caught, failures_explained(QUIET, tmp_path):
        train(toy_config(tmp_path))
    assert '\n' not in str(caught.value)


def test_a_worker_that_dies_is_explained(tmp_path: Path, monkeypatch):
    def die(self, results):
        if get_worker_info() is not None and results['sample_idx'] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return read(self, results)

    read = ToyNoise.__call__
    monkeypatch.setattr(ToyNoise, '__call__', die)
    killed = pytest.raises(UserError, match='a worker of the data loader was killed.*`resume`')
    with killed, failures_explained(QUIET, tmp_path):
        train(toy_config(tmp_path))


def stopped_by(work_dir: Path) -> str:
    """Train with checkpoints after 4, 8 and 12 iterations, and explain what stops it."""
    with (
        pytest.raises(UserError) as caught,
        failures_explained(QUIET, work_dir),
    ):
        train(quick(toy_iterations(work_dir)))
    message = str(caught.value)
    assert '\n' not in message and '`resume`' in message
    return message


def in_iteration(monkeypatch, number: int, happens) -> None:
    """Run a function in one iteration of the toy run."""
    step, count = ToyModel.train_step, 0

    def with_fault(self, *args, **kwargs):
        nonlocal count
        count += 1
        if count == number:
            happens()
        return step(self, *args, **kwargs)

    monkeypatch.setattr(ToyModel, 'train_step', with_fault)


def test_removed_work_dir_stops_the_run(tmp_path: Path, monkeypatch):
    work_dir = tmp_path / 'run'
    in_iteration(monkeypatch, 6, lambda: shutil.rmtree(work_dir))
    message = stopped_by(work_dir)
    assert (
        'the work dir was removed' in message and f'no complete checkpoint in {work_dir}' in message
    )
    assert 'data' not in message.partition('(')[0]


def test_removed_logs_stop_the_run(tmp_path: Path, monkeypatch):
    in_iteration(
        monkeypatch, 6, lambda: [shutil.rmtree(logs) for logs in tmp_path.glob('*/vis_data')]
    )
    message = stopped_by(tmp_path)
    assert 'work dir was removed or changed' in message
    assert f'{tmp_path / "iter_4.pth"} is the last complete checkpoint' in message


@pytest.mark.parametrize('number', [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_full_disk_at_a_checkpoint_is_explained(tmp_path: Path, monkeypatch, number: int):
    """The last good checkpoint is not replaced, and the message names it."""
    fsync = os.fsync

    def full(descriptor: int) -> None:
        if 'iter_8' in os.readlink(f'/proc/self/fd/{descriptor}'):
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    monkeypatch.setattr(os, 'fsync', full)
    message = stopped_by(tmp_path)
    assert str(tmp_path / 'iter_8.pth') in message and os.strerror(number) in message
    assert f'{tmp_path / "iter_4.pth"} is the last complete checkpoint' in message
    assert [file.name for file in tmp_path.glob('.*') if 'partial' in file.name] == []
    assert [file.name for file in tmp_path.glob('*.pth')] == ['iter_4.pth']


def test_full_disk_at_the_start_is_explained(tmp_path: Path, monkeypatch):
    def full(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Runner, 'dump_config', full)
    config = toy_config(tmp_path)
    config.experiment_name = 'full'
    with pytest.raises(UserError, match='the disk is full'):
        build_runner(ConfigView(config))


class Refusing(io.StringIO):
    """A file that cannot be written to, for a reason of the system."""

    def __init__(self, number: int):
        super().__init__()
        self.number = number

    def write(self, text: str) -> int:
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize(('number', 'is_shown'), [(errno.ENOSPC, False), (errno.EBADF, True)])
def test_a_log_on_a_full_disk_prints_no_traceback_for_each_line(
    tmp_path: Path, capsys, number: int, is_shown: bool
):
    config = toy_config(tmp_path)
    config.experiment_name = f'refusing_{number}'
    logger = build_runner(ConfigView(config)).logger
    (file,) = (handler for handler in logger.handlers if isinstance(handler, logging.FileHandler))
    file.setStream(Refusing(number))
    logger.warning('one more line')
    printed = ''.join(capsys.readouterr())
    assert 'one more line' in printed and ('Traceback' in printed) is is_shown
