"""Warnings about a run that is slow or finds nothing."""

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
from mmengine.logging import HistoryBuffer
from toy import quick, toy_iterations, train

from ptnt_mm.registry import HOOKS


@pytest.mark.parametrize(('loading', 'warnings'), [(0.6, 1), (0.4, 0)])
def test_slow_data_loading_is_warned_about_once(caplog, loading: float, warnings: int):
    times = dict(time=1.0, data_time=loading)
    scalars = {f'train/{name}': HistoryBuffer([t] * 50, [1] * 50) for name, t in times.items()}
    hook, hub = HOOKS.build(dict(type='HealthHook')), SimpleNamespace(log_scalars=scalars)
    for iteration in (48, 49, 99):
        logger = logging.getLogger('health')
        hook.after_train_iter(SimpleNamespace(message_hub=hub, logger=logger, iter=iteration), 0)
    assert [record.message[:22] for record in caplog.records] == [
        'data loading takes 60%'
    ] * warnings


def test_missing_timers_are_ignored(tmp_path: Path):
    """MMEngine's hook that measures them may be switched off."""
    config = quick(toy_iterations(tmp_path, 50))
    config.default_hooks.update(timer=None, logger=None)
    config.custom_hooks += [dict(type='HealthHook')]
    train(config)


def test_evaluation_without_predictions_is_explained_once(caplog):
    """mmdet logs an error without an explanation."""
    hook = HOOKS.build(dict(type='HealthHook'))
    runner = SimpleNamespace(logger=logging.getLogger('health'))
    for metrics in (None, dict(mAP=0.0), {}, {}):
        hook.after_val_epoch(runner, metrics)
    (said,) = (record.message for record in caplog.records)
    assert 'no image has predictions' in said and 'train for longer' in said
