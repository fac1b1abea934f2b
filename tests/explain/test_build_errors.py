"""A constructor that refuses its settings is explained."""

import logging
from pathlib import Path

import pytest
from mmengine.registry import MODELS, DefaultScope
from torch import nn
from toy import ToyModel, quick, toy_config

from ptnt_mm.config.hosts import import_host
from ptnt_mm.engine import train as training
from ptnt_mm.engine.failures import failures_explained
from ptnt_mm.engine.runner import QuietRunner, build_runner
from ptnt_mm.explain.build_errors import (
    explain_build_error,
    explain_refusal,
    explained_late_building,
)
from ptnt_mm.utils.errors import UserError


def test_an_absent_class_names_the_nearest():
    with pytest.raises(KeyError) as caught:
        MODELS.build(dict(type='PyramidTMT'))
    explained = explain_build_error(caught.value)
    assert explained.startswith("unknown type 'PyramidTMT': did you mean 'PyramidTNT'?")


def test_a_class_of_another_library_needs_its_scope():
    import_host('mmdet')
    import_host('mmseg')
    with DefaultScope.overwrite_default_scope('mmseg'), pytest.raises(KeyError) as caught:
        MODELS.build(dict(type='RetinaHead'))
    assert "did you mean 'mmdet.RetinaHead'?" in explain_build_error(caught.value)


def test_a_refused_argument_names_the_nearest():
    class Base(nn.Module):
        def __init__(self, hidden_dim: int = 1):
            super().__init__()

    class Derived(Base):
        def __init__(self, out_dim: int = 1, **kwargs):
            super().__init__(**kwargs)

    MODELS.register_module(name='RefusingDerived', module=Derived)
    try:
        with pytest.raises(TypeError) as caught:
            MODELS.build(dict(type='RefusingDerived', hiden_dim=3))
    finally:
        MODELS._module_dict.pop('RefusingDerived')
    explained = explain_build_error(caught.value)
    assert explained.startswith("Derived: unknown argument 'hiden_dim': did you mean 'hidden_dim'?")


def test_other_errors_keep_their_words():
    assert explain_build_error(ValueError('as it was')) == 'as it was'
    assert explain_build_error(AssertionError()) == 'AssertionError'
    assert explain_build_error(KeyError('key')) == "KeyError: 'key'"


def test_a_bug_in_a_constructor_is_no_refusal():
    class Buggy(nn.Module):
        def __init__(self):
            super().__init__()
            self._initialise(scale=1)

        def _initialise(self) -> None:
            pass

    with pytest.raises(TypeError) as caught:
        MODELS.build(dict(type=Buggy))
    assert explain_refusal(caught.value) is None
    explained = explain_build_error(caught.value)
    assert "unexpected keyword argument 'scale'" in explained
    line = Buggy.__init__.__code__.co_firstlineno + 2
    assert explained.endswith(f'({__file__}, line {line})')


def test_missing_file_of_a_data_set_class_is_named(tmp_path: Path):
    missing = tmp_path / 'imagelabels.mat'

    class Flowers:
        def __init__(self):
            missing.open()

    with pytest.raises(UserError, match=f'^{missing} .*docs/data.md'):
        QuietRunner.build_dataloader(dict(dataset=dict(type=Flowers), batch_size=1, sampler=None))


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
    monkeypatch.setattr(training, 'check_before_training', lambda config: [])
    config = toy_config(tmp_path)
    config.experiment_name = f'bug_{type(error).__name__}'
    with pytest.raises(type(error)) as caught:
        training.train(quick(config))
    assert caught.value is error


def test_invalid_optimizer_settings_are_refused(tmp_path: Path):
    config = toy_config(tmp_path)
    config.optim_wrapper.accumulative_counts = 0
    config.experiment_name = 'refused'
    runner = build_runner(config)
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
    runner = build_runner(config)
    logger = logging.getLogger('quiet')
    with pytest.raises(UserError, match='NoSuchClass'), failures_explained(logger, tmp_path):
        runner.train()


def test_failed_download_of_a_data_set_is_explained(tmp_path: Path):
    from mmpretrain.datasets import CIFAR10

    folder = tmp_path / 'cifar10'
    address = 'http://127.0.0.1:9/cifar-10-python.tar.gz'  # nothing answers there
    words = f'^{address} cannot be downloaded: .* into the folder {folder}/$'
    with pytest.raises(UserError, match=words), explained_late_building('the data loader'):
        type('Cifar', (CIFAR10,), dict(url=address))(str(folder))
