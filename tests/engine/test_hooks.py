"""What stops a training, what it steps over, and what it tells."""

import logging
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.optim import AdamW
from torch.utils.data import get_worker_info

from ptnt_mm.engine.failure import failures_explained
from ptnt_mm.engine.hooks.bad_loss import StopAtBadLossHook
from ptnt_mm.engine.hooks.health import HealthHook
from ptnt_mm.errors import UserError

from .toy import ToyModel, ToyNoise, toy_config, train


def log_of(work_dir: Path) -> str:
    return '\n'.join(file.read_text() for file in work_dir.rglob('*.log'))


@pytest.mark.parametrize('bad', [float('nan'), float('inf')])
def test_a_bad_loss_stops_at_once_and_names_the_images(tmp_path: Path, monkeypatch, bad: float):
    forward, calls = ToyModel.forward, []

    def spoilt(self, inputs, data_samples, mode):
        calls.append([sample.img_path for sample in data_samples])
        found = forward(self, inputs, data_samples, mode)
        return {'loss': found['loss'] * bad} if len(calls) == 5 else found

    monkeypatch.setattr(ToyModel, 'forward', spoilt)
    with pytest.raises(UserError) as caught:
        train(toy_config(tmp_path))
    message = str(caught.value)
    assert f'epoch 2, iteration 5: loss is {bad}' in message
    assert all(name in message for name in calls[4]) and '--resume' in message
    assert len(calls) == 5
    (checkpoint,) = tmp_path.glob('*.pth')
    weights = torch.load(checkpoint, weights_only=False)['state_dict']
    assert checkpoint.name == 'epoch_1.pth'
    assert all(weight.isfinite().all() for weight in weights.values())


def test_infinite_gradients_alone_do_not_stop(tmp_path: Path, monkeypatch):
    """float16's scaling meets them as a matter of course, and leaves such a step out."""
    left_out, step = [], AdamW.step

    def scaled_step(self, *args):
        gradients = [p.grad for group in self.param_groups for p in group['params']]
        if len(left_out) < 2:
            gradients[0].fill_(float('inf'))
        if all(gradient.isfinite().all() for gradient in gradients):
            step(self, *args)
        else:
            left_out.append(True)

    monkeypatch.setattr(AdamW, 'step', scaled_step)
    config = toy_config(tmp_path, epochs=1)
    train(config)
    assert len(left_out) == 2 and (tmp_path / 'epoch_1.pth').exists()


def test_a_batch_of_several_branches_has_no_names():
    """As of semi-supervised training."""
    batch = dict(inputs=dict(sup=[]), data_samples=dict(sup=[]))
    with pytest.raises(UserError, match='The batch was without names'):
        StopAtBadLossHook().after_train_iter(
            SimpleNamespace(epoch=0, iter=0), 0, batch, dict(loss=torch.tensor(float('nan')))
        )


def spoil(monkeypatch, rows: set[int]) -> None:
    read = ToyNoise.__call__

    def failing(self, results):
        if results['sample_idx'] in rows:
            raise OSError(f'row {results["sample_idx"]} is cut short')
        results['img_path'] = f'{results["sample_idx"]}.jpg'
        return read(self, results)

    monkeypatch.setattr(ToyNoise, '__call__', failing)


@pytest.mark.parametrize('workers', [0, 2])
def test_images_that_cannot_be_read_are_named_and_left_out(tmp_path, monkeypatch, workers):
    spoil(monkeypatch, {3, 7})
    config = toy_config(tmp_path, epochs=2)
    config.train_dataloader.update(num_workers=workers, persistent_workers=workers > 0)
    config.custom_hooks += [dict(type='SkipCorruptImagesHook', limit=20)]
    train(config)
    assert (tmp_path / 'epoch_2.pth').exists()
    # A process says the same thing once.
    assert log_of(tmp_path).count('is cut short') >= 2


def test_too_many_of_them_are_an_error(tmp_path: Path, monkeypatch):
    spoil(monkeypatch, {3, 7, 9})
    config = toy_config(tmp_path, epochs=2)
    config.custom_hooks += [dict(type='SkipCorruptImagesHook', limit=2)]
    with pytest.raises(UserError, match='images could not be read in this epoch.*limit='):
        train(config)


def test_a_worker_that_dies_is_explained(tmp_path: Path, monkeypatch):
    def die(self, results):
        if get_worker_info() is not None and results['sample_idx'] == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return read(self, results)

    read = ToyNoise.__call__
    monkeypatch.setattr(ToyNoise, '__call__', die)
    quiet = logging.getLogger('quiet')
    killed = pytest.raises(UserError, match='a worker of the data loader was killed.*--resume')
    with killed, failures_explained(quiet):
        train(toy_config(tmp_path))


def annotated(work_dir: Path, file: Path, epochs: int):
    config = toy_config(work_dir, epochs)
    config.train_dataloader.dataset.ann_file = str(file)
    config.custom_hooks += [dict(type='RememberAnnotationsHook')]
    return config


def test_changed_annotations_are_noticed_on_resume(tmp_path: Path):
    file, work_dir = tmp_path / 'train.json', tmp_path / 'run'
    file.write_text('{}')
    train(annotated(work_dir, file, 1))
    for content, warned in (('{}', False), ('{"more": 1}', True)):
        file.write_text(content)
        config = annotated(work_dir, file, 2)
        config.resume, config.load_from = True, str(work_dir / 'epoch_1.pth')
        train(config)
        (work_dir / 'epoch_2.pth').rename(work_dir / f'{warned}.pth')
        assert ('is not what this training began with' in log_of(work_dir)) == warned
        train(annotated(work_dir, file, 1)) if not warned else None


def test_health_is_logged(tmp_path: Path):
    config = toy_config(tmp_path, epochs=2)
    config.custom_hooks += [dict(type='HealthHook', interval=2)]
    train(config)
    log = log_of(tmp_path)
    for name in ('images_per_second', 'data_share', 'memory_mib', 'gradient_norm'):
        assert f'{name}: ' in log


class Runner:
    """As much of a runner as the hook's warnings need."""

    def __init__(self):
        self.logger = logging.getLogger('health')


def test_growing_memory_is_told_once(monkeypatch, caplog):
    hook, sizes = HealthHook(), iter([100, 120, 150, 190, 240, 300])
    monkeypatch.setattr('ptnt_mm.engine.hooks.health._memory', lambda: next(sizes) * 2**20)
    for _ in range(6):
        hook.after_train_epoch(Runner())
    assert [record.message for record in caplog.records] == [
        'memory grows from epoch to epoch: 100, 120, 150, 190 MiB'
    ]


def test_steady_memory_is_not_told(monkeypatch, caplog):
    hook, sizes = HealthHook(), iter([100, 150, 151, 152, 150, 153])
    monkeypatch.setattr('ptnt_mm.engine.hooks.health._memory', lambda: next(sizes) * 2**20)
    for _ in range(6):
        hook.after_train_epoch(Runner())
    assert not caplog.records


def test_a_runaway_norm_is_told(caplog):
    hook = HealthHook()
    hook._norms.extend([1.0, 1.1, 0.9, 1.0, 1.2])
    hook._check_norm(Runner())
    assert not caplog.records
    hook._norms.append(500.0)
    hook._check_norm(Runner())
    assert 'the norm of the gradients is 500, usually' in caplog.text
