"""A constructor that refuses its settings is explained."""

import logging
from pathlib import Path

import pytest
from toy import ToyModel, quick, toy_config

from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine import train as training
from ptnt_mm.workbench.engine.failures import failures_explained
from ptnt_mm.workbench.engine.runner import QuietRunner, build_runner


def test_missing_file_of_a_data_set_class_is_named(tmp_path: Path):
    missing = tmp_path / 'imagelabels.mat'

    class Flowers:
        def __init__(self):
            missing.open()

    with pytest.raises(UserError, match=f'^{missing} .*docs/data.md'):
        QuietRunner.build_dataloader(dict(dataset=dict(type=Flowers), batch_size=1, sampler=None))


def test_a_failed_download_of_a_data_set_names_address_and_folder(tmp_path: Path):
    from mmpretrain.datasets import CIFAR10

    address = 'http://127.0.0.1:9/cifar-10-python.tar.gz'  # nothing answers there
    data_set = dict(type=type('Cifar', (CIFAR10,), dict(url=address)), data_root=str(tmp_path))
    with pytest.raises(UserError) as caught:
        QuietRunner.build_dataloader(dict(dataset=data_set, batch_size=1, sampler=None))
    assert address in str(caught.value) and f'{tmp_path}/' in str(caught.value)


@pytest.mark.parametrize(
    ('settings', 'words'),
    [
        (dict(num_workers=0, persistent_workers=True), 'persistent_workers option needs num_work'),
        (dict(num_workers=-1), 'num_workers option should be non-negative'),
        (dict(batch_size=0), 'batch_size should be a positive integer'),
    ],
)
def test_invalid_data_loader_settings_are_refused(settings: dict, words: str):
    loader = dict(dataset=[0], batch_size=1, sampler=dict(type='DefaultSampler'))
    with pytest.raises(UserError, match=f'^the data loader cannot be built: {words}'):
        QuietRunner.build_dataloader(loader | settings)


def test_a_package_that_a_data_set_needs_is_named():
    class Panoptic:
        def __init__(self):
            raise ImportError('panopticapi is not installed')

    with pytest.raises(UserError, match='^the data loader cannot be built: panopticapi is not'):
        QuietRunner.build_dataloader(dict(dataset=dict(type=Panoptic), batch_size=1, sampler=None))


def test_a_bug_in_a_data_set_keeps_its_traceback():
    class Buggy:
        def __init__(self):
            {}['boxes']

    with pytest.raises(KeyError, match='boxes'):
        QuietRunner.build_dataloader(dict(dataset=dict(type=Buggy), batch_size=1, sampler=None))


@pytest.mark.parametrize(
    'error',
    [
        TypeError("Head.loss() got an unexpected keyword argument 'x'"),
        ValueError('shapes differ'),
        KeyError('boxes'),
    ],
)
def test_a_bug_in_a_model_keeps_its_type(tmp_path: Path, monkeypatch, error: Exception):
    """Building is over: the settings are not to blame."""

    def forward(self, *args, **kwargs):
        raise error

    monkeypatch.setattr(ToyModel, 'forward', forward)
    config = toy_config(tmp_path)
    config.experiment_name = f'bug_{type(error).__name__}'
    with pytest.raises(type(error)) as caught:
        training.train(quick(config))
    assert caught.value is error


def test_invalid_optimizer_settings_are_refused(tmp_path: Path):
    config = toy_config(tmp_path)
    config.optim_wrapper.accumulative_counts = 0
    config.experiment_name = 'refused'
    runner = build_runner(ConfigView(config))
    with pytest.raises(UserError, match='^the optimizer cannot be built: .*accumulative_counts'):
        runner.train()


@pytest.mark.parametrize('place', ['train_cfg', 'val_evaluator', 'custom_hooks', 'param_scheduler'])
def test_unknown_class_is_named_when_training_starts(tmp_path: Path, place: str):
    wrong = dict(type='NoSuchClass')
    settings = {
        'train_cfg': wrong,
        'val_evaluator': wrong,
        'param_scheduler': wrong,
        'custom_hooks': [dict(type='EMAHook', ema_type='NoSuchClass')],
    }
    config = quick(toy_config(tmp_path))
    config.update(
        val_dataloader=config.train_dataloader, val_cfg={}, val_evaluator=dict(type='ToyMetric')
    )
    config[place], config.experiment_name = settings[place], f'unknown_{place}'
    runner = build_runner(ConfigView(config))
    logger = logging.getLogger('quiet')
    with pytest.raises(UserError, match='NoSuchClass'), failures_explained(logger, tmp_path):
        runner.train()
