"""What the system does to a training, explained in a line."""

import errno
import logging
from pathlib import Path

import pytest
import torch
from mmengine.runner import Runner

from ptnt_mm.engine.failures import explain_failure, failures_explained, late_building
from ptnt_mm.utils.errors import UserError

from .toy import ToyNoise, toy_config, train


@pytest.mark.parametrize(
    ('error', 'words'),
    [
        (OSError(errno.ENOSPC, 'No space left on device'), 'the disk is full.*--resume'),
        (OSError(errno.EDQUOT, 'Disk quota exceeded'), 'the disk is full'),
        (
            RuntimeError('DataLoader worker (pid 12) is killed by signal: Killed. '),
            'a worker of the data loader was killed.*num_workers=1',
        ),
        (
            RuntimeError('DataLoader worker (pid(s) 12, 13) exited unexpectedly'),
            'a worker of the data loader was killed',
        ),
        (
            RuntimeError(
                'DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that '
                "dataloader's workers are out of shared memory."
            ),
            '/dev/shm is too small',
        ),
        (
            FileNotFoundError(errno.ENOENT, 'No such file or directory', 'data/1.jpg'),
            "^No such file or directory: 'data/1.jpg'. If data was moved.*--resume",
        ),
        (OSError(errno.ESTALE, 'Stale file handle'), '^Stale file handle. If data was moved'),
        (RuntimeError('unable to write to file </torch_1_2>: /dev/shm'), '/dev/shm'),
        (torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 2 GiB'), 'the GPU has no'),
        (RuntimeError('[gloo] Connection closed by peer [127.0.0.1]:3'), 'another process of this'),
    ],
)
def test_what_a_user_can_do(monkeypatch, error: Exception, words: str):
    monkeypatch.setattr('ptnt_mm.engine.failures.get_world_size', lambda: 2)
    with pytest.raises(UserError, match=words), failures_explained(logging.getLogger('quiet')):
        raise error


@pytest.mark.parametrize(
    'error',
    [
        ValueError('shapes differ'),
        KeyError('bbox'),
        ConnectionError('Connection reset by peer'),
        OSError(errno.ENOMEM, 'Cannot allocate memory'),
    ],
)
def test_what_is_the_programs_own_is_left(error: Exception):
    assert explain_failure(error) is None
    with pytest.raises(type(error)), failures_explained(logging.getLogger('quiet')):
        raise error


def test_the_log_keeps_the_traceback(caplog: pytest.LogCaptureFixture):
    with pytest.raises(UserError), failures_explained(logging.getLogger('kept')):
        raise OSError(errno.ENOSPC, 'No space left on device')
    assert 'What failed:\nTraceback (most recent call last)' in caplog.text


def test_data_that_goes_away_in_a_worker(tmp_path: Path, monkeypatch):
    """As of validation, whose images are not left out; torch keeps the text of the error alone."""

    def gone(self, results: dict) -> dict:
        raise FileNotFoundError(errno.ENOENT, 'No such file or directory', 'data/val/1.jpg')

    monkeypatch.setattr(ToyNoise, '__call__', gone)
    stopped = pytest.raises(UserError, match="^No such file or directory: 'data/val/1.jpg'")
    with stopped as caught, failures_explained(logging.getLogger('quiet')):
        train(toy_config(tmp_path))
    assert '\n' not in str(caught.value)


def test_files_of_data_sets_that_only_their_class_knows(tmp_path: Path):
    missing = tmp_path / 'imagelabels.mat'

    class Flowers:
        def __init__(self):
            missing.open()

    with pytest.raises(UserError, match=f'^{missing} is not there. docs/data.md'), late_building():
        Runner.build_dataloader(dict(dataset=dict(type=Flowers), batch_size=1, sampler=None))
    with pytest.raises(FileNotFoundError), late_building():
        missing.open()


@pytest.mark.parametrize(
    ('settings', 'words'),
    [
        (dict(num_workers=0, persistent_workers=True), 'persistent_workers option needs num_work'),
        (dict(num_workers=-1), 'num_workers option should be non-negative'),
        (dict(batch_size=0), 'batch_size should be a positive integer'),
    ],
)
def test_settings_that_the_data_loader_refuses(settings: dict, words: str):
    loader = dict(dataset=[0], batch_size=1, sampler=dict(type='DefaultSampler'))
    refused = pytest.raises(UserError, match=f'^the data loader cannot be built: {words}')
    with refused, late_building():
        Runner.build_dataloader(loader | settings)
    with pytest.raises(ValueError, match='another'), late_building():
        raise ValueError('another failure')


def test_an_optimizer_that_is_refused(tmp_path: Path):
    config = toy_config(tmp_path)
    config.optim_wrapper.accumulative_counts = 0
    refused = pytest.raises(
        UserError, match='^the optimizer cannot be built: .*accumulative_counts'
    )
    with refused, late_building():
        train(config)


def test_data_sets_that_cannot_fetch_their_files(tmp_path: Path):
    cifar = pytest.importorskip('mmpretrain.datasets').CIFAR10
    folder = tmp_path / 'cifar10'
    address = 'http://127.0.0.1:9/cifar-10-python.tar.gz'  # nothing answers there
    words = f'^{address} cannot be fetched: .* into the folder {folder}/$'
    with pytest.raises(UserError, match=words), late_building():
        type('Cifar', (cifar,), dict(url=address))(str(folder))
