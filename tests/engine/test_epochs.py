"""A different number of epochs changes the whole schedule."""

import re
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import PARAM_SCHEDULERS
from torch.optim import SGD
from toy import quick, toy_config

import ptnt_mm
from ptnt_mm import api
from ptnt_mm.utils.errors import UserError
from ptnt_mm.workbench.check.rules import KEYS, RULES, check_rules
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.engine.epochs import stretch, without_empty

BEFORE = 10


def stretched(epochs: int, **settings) -> Config:
    """A config of ten epochs, stretched."""
    settings.setdefault('train_cfg', dict(max_epochs=BEFORE))
    config = Config(settings)
    stretch(ConfigView(config), epochs)
    return config


SCHEDULES = {
    'end and T_max': (
        dict(type='CosineAnnealingLR', begin=2, end=10, T_max=8),
        {5: dict(begin=1, end=5, T_max=4), 30: dict(begin=6, end=30, T_max=24)},
    ),
    'milestones': (
        dict(type='MultiStepLR', milestones=[6, 9]),
        {20: dict(milestones=[12, 18])},
    ),
    'milestones from begin': (
        dict(type='mmengine.MultiStepLR', begin=4, milestones=[2, 4], end=100),
        {20: dict(begin=8, milestones=[4, 8], end=110)},
    ),
    'periods': (
        dict(type='CosineRestartLR', periods=[4, 6], eta_min=0),
        {5: dict(periods=[2, 3]), 20: dict(periods=[8, 12])},
    ),
    'factors': (
        dict(type='ExponentialLR', gamma=0.25),
        {5: dict(gamma=0.0625), 20: dict(gamma=0.5)},
    ),
    'step': (dict(type='StepLR', step_size=4), {20: dict(step_size=8)}),
    'warm-up by epochs': (
        dict(type='LinearLR', begin=0, end=5),
        {20: dict(end=10), 2: dict(end=1, convert_to_iter_based=True)},
    ),
    'warm-up by iterations': (
        dict(type='LinearLR', by_epoch=False, begin=0, end=500),
        {20: dict(end=500), 5: dict(end=250)},
    ),
    'everything by iterations': (
        dict(type='CosineAnnealingLR', by_epoch=False, begin=500, end=9000, T_max=8500),
        {20: dict(begin=1000, end=18000, T_max=17000)},
    ),
}


@pytest.mark.parametrize('name', SCHEDULES)
def test_a_schedule_keeps_its_shares_of_the_run(name: str):
    schedule, expected = SCHEDULES[name]
    for epochs, changed in expected.items():
        config = stretched(epochs, param_scheduler=[schedule])
        assert config.param_scheduler == [{**schedule, **changed}]
        alone = stretched(epochs, param_scheduler=schedule).param_scheduler
        of_two = stretched(epochs, param_scheduler=dict(a=[schedule], b=schedule)).param_scheduler
        assert of_two == dict(a=config.param_scheduler, b=alone) and alone == {
            **schedule,
            **changed,
        }


def test_consecutive_schedules_stay_consecutive():
    """YOLOX's: the last ends with the run."""
    schedules = [
        dict(type='QuadraticWarmupLR', by_epoch=True, begin=0, end=1, convert_to_iter_based=True),
        dict(type='CosineAnnealingLR', begin=1, end=8, T_max=7, eta_min=0),
        dict(type='ConstantLR', begin=8, end=10, factor=1),
    ]
    hooks = [dict(type='YOLOXModeSwitchHook', num_last_epochs=2)]
    for epochs in (1, 2, 3, 7, 50):
        config = stretched(epochs, param_scheduler=schedules, custom_hooks=hooks)
        ends = [0, *(schedule.end for schedule in config.param_scheduler)]
        assert [schedule.begin for schedule in config.param_scheduler] == ends[:-1]
        assert len(ends) == 4
        last = config.param_scheduler[-1]
        assert last.end == epochs
        assert config.custom_hooks[0].num_last_epochs == round(last.end - last.begin)


MULTI_STEP = dict(type='MultiStepLR', begin=0, end=12, milestones=[8, 11], gamma=0.1)
WARM_UP = [
    dict(type='LinearLR', start_factor=0.01, end=5),
    dict(type='CosineAnnealingLR', begin=5, end=300, T_max=295),
]


@pytest.mark.parametrize(
    ('schedules', 'before', 'epochs', 'length', 'expected'),
    [
        (MULTI_STEP, 12, 1, 12, {7: 1, 8: 0.1, 10: 0.1, 11: 0.01}),
        ([MULTI_STEP], 12, 4, 12, {31: 1, 32: 0.1, 43: 0.1, 44: 0.01}),
        (dict(type='mmengine.StepLR', step_size=4), 12, 2, 12, {7: 1, 8: 0.1, 16: 0.01}),
        (WARM_UP, 300, 1, 600, {0: 0.01, 9: 1, 305: 0.5, 599: 0}),
        (WARM_UP, 300, 1, 12, {0: 1, 6: 0.487, 11: 0.011}),  # too short to warm up
    ],
)
def test_less_than_an_epoch_becomes_iterations(
    schedules: dict | list, before: int, epochs: int, length: int, expected: dict[int, float]
):
    config = Config(dict(train_cfg=dict(max_epochs=before), param_scheduler=schedules))
    stretch(ConfigView(config), epochs)
    assert not [*check_rules(ConfigView(config), RULES, KEYS)]
    optimizer = SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    defaults = dict(optimizer=optimizer, epoch_length=length)
    found = without_empty(config.param_scheduler, length)
    built = [PARAM_SCHEDULERS.build(schedule, default_args=defaults) for schedule in found]
    rates = []
    for _ in range(length * epochs):
        rates.append(optimizer.param_groups[0]['lr'])
        optimizer.step()
        for schedule in built:
            schedule.step()
    assert {at: rates[at] for at in expected} == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ('epochs', 'expected'),
    [
        (5, dict(val_interval=1, val_begin=4, dynamic_intervals=[(4, 1)])),
        (20, dict(val_interval=2, val_begin=14, dynamic_intervals=[(16, 1)])),
    ],
)
def test_evaluations_become_more_frequent_but_never_less(epochs: int, expected: dict):
    loop = dict(max_epochs=10, val_interval=2, val_begin=7, dynamic_intervals=[(8, 1)])
    assert stretched(epochs, train_cfg=loop).train_cfg == dict(expected, max_epochs=epochs)


def test_evaluations_that_never_begin_still_do_not():
    loop = dict(max_epochs=12, val_begin=13)
    assert [stretched(n, train_cfg=loop).train_cfg.val_begin for n in (3, 36)] == [4, 37]


def test_hooks_and_heads_follow():
    config = stretched(
        5,
        custom_hooks=[
            dict(type='PipelineSwitchHook', switch_epoch=8, switch_pipeline=[dict(type='Any')]),
            dict(type='SwitchRecipeHook', schedule=[dict(action_epoch=4), dict(action_epoch=6)]),
            dict(type='EMAHook', momentum=0.001, begin_epoch=2),
            dict(type='EMAHook', ema_type='ExpMomentumEMA'),
        ],
        default_hooks=dict(
            checkpoint=dict(type='CheckpointHook', interval=4),
            param_scheduler=dict(type='YOLOv5ParamSchedulerHook', max_epochs=10),
        ),
        model=dict(bbox_head=dict(initial_epoch=4, by_epoch=True)),
    )
    switch, recipes, average, averaged = config.custom_hooks
    assert switch.switch_epoch == 4
    assert [recipe.action_epoch for recipe in recipes.schedule] == [2, 3]
    assert (average.momentum, average.begin_epoch, averaged.momentum) == (0.002, 1, 0.0004)
    assert config.default_hooks.checkpoint.interval == 2
    assert config.default_hooks.param_scheduler.max_epochs == 5
    assert config.model.bbox_head == dict(initial_epoch=2, by_epoch=True)


@pytest.mark.parametrize('epochs', [1, 3, 36, 100])
@pytest.mark.parametrize(
    'name',
    [
        *(
            'retinanet_ptnt_s_1x',
            'retinanet_ptnt_s_3x',
            'rtmdet_ptnt_s_1x',
            'sparse_rcnn_ptnt_s_3x_ms',
        ),
        *('classifier_ptnt_s_300e_imagenet', 'retinanet_ptnt_s_1x_ema', 'demo_gfl_lite0'),
    ],
)
def test_no_rule_finds_a_fault_in_a_stretched_config(name: str, epochs: int):
    config = ptnt_mm.get_config(name)
    stretch(ConfigView(config), epochs)
    assert [str(finding) for finding in check_rules(ConfigView(config), RULES, KEYS)] == []


@pytest.mark.parametrize(
    ('loop', 'message'),
    [
        (dict(type='IterBasedTrainLoop', max_iters=9), 'trains for 9 iterations: change'),
        (dict(max_epochs=3.5), 'needs a config with train_cfg.max_epochs'),
        (dict(by_epoch=True), 'needs a config with train_cfg.max_epochs'),
    ],
)
def test_a_config_without_a_number_of_epochs_is_refused(loop: dict, message: str):
    with pytest.raises(UserError, match=message):
        stretched(3, train_cfg=loop)
    with pytest.raises(UserError, match='`epochs=0`: expected an integer above 0'):
        stretched(0)


def rates(work_dir: Path, planned: int, **given) -> list[float]:
    """The learning rate of every iteration, also of those before the run was resumed."""
    cosine = dict(type='CosineAnnealingLR', end=planned, T_max=planned, convert_to_iter_based=True)
    config = quick(toy_config(work_dir, planned, param_scheduler=[cosine]))
    # Otherwise MMEngine names runs by the second, and two in a second share their logs.
    config.experiment_name = f'{work_dir.name} {sorted(given)}'
    runner = api.train(config, seed=1, **given)
    return [round(rate, 9) for rate in runner.message_hub.get_scalar('train/lr').data[0]]


@pytest.mark.slow
def test_a_stretched_run_has_the_rates_of_a_long_one_also_when_it_is_resumed(tmp_path: Path):
    planned = rates(tmp_path / 'planned', 4)
    assert len(set(planned)) == 12
    assert rates(tmp_path / 'stretched', 2, epochs=4) == planned
    short = rates(tmp_path / 'resumed', 2)
    resumed = rates(tmp_path / 'resumed', 2, epochs=4, resume='auto')
    assert resumed == short + planned[6:]
    said = ''.join(file.read_text() for file in (tmp_path / 'resumed').rglob('*.log'))
    assert 'the learning rate continues at' in said, 'what was asked for is no warning'
    assert set(re.findall(r'Changed since the checkpoint: (\w+)', said)) == {'experiment_name'}
    assert ' WARNING - The optimizer' not in said
    again = rates(tmp_path / 'resumed', 2, epochs=5, resume='auto')
    assert len(again) == 15, 'a run that was stretched is stretched again'
    said = ''.join(file.read_text() for file in (tmp_path / 'resumed').rglob('*.log'))
    assert 'Changed since the checkpoint: param_scheduler' not in said


def test_a_run_is_too_short_for_its_warm_up(tmp_path: Path):
    runner = api.train(quick(toy_config(tmp_path, 300, param_scheduler=WARM_UP)), epochs=1)
    assert [type(schedule).__name__ for schedule in runner.param_schedulers] == [
        'CosineAnnealingLR'
    ]
