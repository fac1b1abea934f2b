"""Each rule finds its fault, and reports nothing in the hosts' configs."""

import pickle
import re

import pytest
from mmengine.config import Config

from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.check.rules import KEYS, RULES, check_rules
from ptnt_mm.workbench.config.read import apply_options, read_config
from ptnt_mm.workbench.config.view import ConfigView

ERROR, WARNING = Severity.ERROR, Severity.WARNING
EPOCHS, ITERATIONS = 'demo_retinanet_ptnt_ti', 'demo_semantic_fpn_ptnt_ti'
TWO_STAGES = 'demo_mask_rcnn_ptnt_ti'
CORRECT = (EPOCHS, ITERATIONS, TWO_STAGES)
SLIDE = {'model.test_cfg.mode': 'slide'}
VAL = 'val_dataloader.dataset.'
CLIP, OPTIMIZER = 'optim_wrapper.clip_grad.', 'optim_wrapper.optimizer.'

FAULTS: list[tuple] = [
    # Post-processing
    (EPOCHS, {'model.test_cfg': None}, ERROR),
    (EPOCHS, {'model.test_cfg.max_per_img': 0}, ERROR),
    (TWO_STAGES, {'model.test_cfg.rpn.max_per_img': 0}, ERROR),
    (EPOCHS, {'tta_model.tta_cfg.max_per_img': 0}, ERROR),
    (EPOCHS, {'model.test_cfg.nms_pre': 0}, ERROR),
    (EPOCHS, {'model.test_cfg.score_thr': 1.5}, ERROR),
    (EPOCHS, {'model.test_cfg.score_thr': -0.1}, ERROR),
    (EPOCHS, {'model.test_cfg.nms.iou_threshold': 2}, ERROR),
    (TWO_STAGES, {'model.test_cfg.rcnn.mask_thr_binary': 128}, ERROR),
    (ITERATIONS, {'model.test_cfg.mode': 'window'}, ERROR),
    (ITERATIONS, {**SLIDE, 'model.test_cfg.crop_size': None}, ERROR, 'model.test_cfg.mode'),
    (ITERATIONS, {**SLIDE, 'model.test_cfg.crop_size': 96}, ERROR, 'model.test_cfg.crop_size'),
    (ITERATIONS, {**SLIDE, 'model.test_cfg.stride': (300, 300)}, ERROR, 'model.test_cfg.stride'),
    # Assignment and losses
    (TWO_STAGES, {'model.train_cfg.rcnn.assigner.pos_iou_thr': 50}, ERROR),
    (TWO_STAGES, {'model.train_cfg.rpn.assigner.pos_iou_thr': 0.1}, ERROR),
    (TWO_STAGES, {'model.train_cfg.rcnn.sampler.num': 0}, ERROR),
    (TWO_STAGES, {'model.train_cfg.rcnn.sampler.pos_fraction': 25}, ERROR),
    (EPOCHS, {'model.bbox_head.loss_cls.loss_weight': 0}, WARNING),
    (EPOCHS, {'model.bbox_head.loss_bbox.loss_weight': -1.0}, ERROR),
    (EPOCHS, {'model.backbone.drop_path_rate': 10}, ERROR),
    # The optimizer
    (EPOCHS, {OPTIMIZER + 'weight_decay': 5}, WARNING),
    (EPOCHS, {OPTIMIZER + 'weight_decay': -0.05}, ERROR),
    (EPOCHS, {OPTIMIZER + 'momentum': 9}, ERROR),
    (EPOCHS, {CLIP + 'max_norm': 0}, ERROR),
    (EPOCHS, {CLIP + 'clip_value': 0}, ERROR),
    (EPOCHS, {'optim_wrapper.accumulative_counts': 0}, ERROR),
    # Loaders
    (EPOCHS, {'train_dataloader.num_workers': -1}, ERROR),
    (EPOCHS, {'train_dataloader.batch_size': 0}, ERROR),
    (EPOCHS, {'train_dataloader.num_workers': 0}, ERROR, 'train_dataloader.persistent_workers'),
    (EPOCHS, {'train_dataloader.sampler.shuffle': False}, WARNING),
    (EPOCHS, {'val_dataloader.drop_last': True}, WARNING),
    (EPOCHS, {'val_dataloader.sampler.type': 'InfiniteSampler'}, ERROR),
    # Pipelines
    (EPOCHS, {VAL + 'pipeline.1': dict(_delete_=True, type='RandomFlip', prob=1.0)}, WARNING),
    (EPOCHS, {'train_dataloader.dataset.pipeline.3.prob': 50}, ERROR),
    (
        EPOCHS,
        {'train_dataloader.dataset.pipeline.2.type': 'TestTimeAug'},
        ERROR,
        'train_dataloader.dataset.pipeline[2]',
    ),
    (EPOCHS, {'train_dataloader.dataset.pipeline.2.scale': (8, 8)}, WARNING),
    (EPOCHS, {VAL + 'pipeline.1.keep_ratio': False}, WARNING),
    (EPOCHS, {VAL + 'test_mode': False}, WARNING, 'val_dataloader.dataset'),
    # Length and schedule
    (EPOCHS, {'val_cfg': None}, ERROR),
    (EPOCHS, {'train_cfg.max_epochs': 0}, ERROR),
    (
        ITERATIONS,
        {'train_cfg.max_iters': 40000, 'train_cfg.val_interval': 1},
        WARNING,
        'train_cfg.val_interval',
    ),
    (EPOCHS, {'train_cfg.val_interval': 40}, WARNING),
    (EPOCHS, {'train_cfg.val_begin': 40}, WARNING),
    (EPOCHS, {'default_hooks.checkpoint.interval': 40}, WARNING),
    (EPOCHS, {'default_hooks.checkpoint.interval': 0}, ERROR),
    (ITERATIONS, {'default_hooks.checkpoint.by_epoch': True}, WARNING, 'default_hooks.checkpoint'),
    (EPOCHS, {'default_hooks.checkpoint.by_epoch': False}, WARNING, 'default_hooks.checkpoint'),
    (EPOCHS, {'default_hooks.logger.interval': 0}, ERROR),
    (ITERATIONS, {'param_scheduler.1.by_epoch': True}, ERROR, 'param_scheduler[1]'),
    (EPOCHS, {'param_scheduler.1.by_epoch': False}, WARNING, 'param_scheduler[1]'),
    (EPOCHS, {'param_scheduler.1.T_max': 100}, WARNING),
    (ITERATIONS, {'param_scheduler.1.end': 1000}, WARNING),
    (EPOCHS, {'train_cfg.max_epochs': 20}, WARNING, 'param_scheduler'),
    (EPOCHS, {'param_scheduler.0.end': 0}, ERROR),
    (
        EPOCHS,
        {'param_scheduler.1': dict(_delete_=True, type='MultiStepLR', milestones=[8, 30])},
        WARNING,
        'param_scheduler[1].milestones[1]',
    ),
    (
        EPOCHS,
        {'param_scheduler.1': dict(_delete_=True, type='MultiStepLR', milestones=[11, 8])},
        ERROR,
        'param_scheduler[1].milestones',
    ),
    (EPOCHS, {'log_level': 'LOUD'}, ERROR),
    (EPOCHS, {'custom_hooks': dict(type='EMAHook')}, ERROR),
    (EPOCHS, {'custom_hooks': ['EMAHook']}, ERROR),
    (EPOCHS, {'custom_hooks': [dict(momentum=0.1)]}, ERROR),
    (EPOCHS, {'param_scheduler': ['LinearLR']}, ERROR),
    (EPOCHS, {'val_evaluator': ['CocoMetric']}, ERROR),
    (EPOCHS, {VAL + 'pipeline': [dict(type='LoadImageFromFile'), 'Resize']}, ERROR),
    (
        EPOCHS,
        {'custom_hooks.0': dict(_delete_=True, type='EMAHook', momentum=0.999)},
        WARNING,
        'custom_hooks[0].momentum',
    ),
]
"""The config, its change, the severity; and the setting that is named, if it is another."""


def _found(config: Config) -> list:
    return list(check_rules(ConfigView(config), RULES, KEYS))


@pytest.fixture(scope='module')
def configs() -> dict[str, bytes]:
    return {name: pickle.dumps(read_config(name)) for name in CORRECT}


def test_nothing_is_wrong_with_ours(configs: dict[str, bytes]):
    assert not [str(one) for config in configs.values() for one in _found(pickle.loads(config))]


def _changed(configs: dict[str, bytes], name: str, change: dict, *where: str) -> tuple[Config, str]:
    """A config with a fault, and the setting that is at fault."""
    config = pickle.loads(configs[name])
    apply_options(config, change)
    # The change of a list has its index after a dot, the finding in brackets.
    return config, where[0] if where else re.sub(r'\.(\d+)(?=\.|$)', r'[\1]', *change)


@pytest.mark.parametrize('fault', FAULTS, ids=[str(change) for _, change, *_ in FAULTS])
def test_a_fault_is_found_by_a_rule(configs, fault: tuple):
    name, change, severity, *other = fault
    config, where = _changed(configs, name, change, *other)
    found = _found(config)
    assert (where, severity) in {(finding.where, finding.severity) for finding in found}
    texts = [finding.what + finding.advice for finding in found]
    assert not [text for text in texts if re.search(r'{(value|found)', text)]


def test_every_rule_has_a_fault(configs: dict[str, bytes]):
    seen = set()
    for name, change, _, *other in FAULTS:
        config, where = _changed(configs, name, change, *other)
        about = {rule for rule in RULES if rule not in seen and rule.is_about(where)}
        for rule in about:
            found = check_rules(ConfigView(config), [rule], KEYS)
            seen |= {rule for finding in found if finding.where == where}
    assert [rule.paths for rule in RULES if rule not in seen] == []


def test_rules_apply_only_to_settings_that_exist():
    """Configs that lack most keys, or have others than expected."""
    for content in (
        dict(),
        dict(model=None, train_cfg=None, param_scheduler=None, optim_wrapper=[]),
        dict(param_scheduler=dict(type='PolyLR'), train_cfg=dict(max_epochs='many')),
        dict(
            model=dict(test_cfg=dict(score_thr='0.05', mode=None, stride=None)), custom_hooks=None
        ),
    ):
        assert _found(Config(content)) == []


@pytest.mark.parametrize('key', ['max_epochs', 'max_iters', 'val_interval'])
@pytest.mark.parametrize('count', [0, -1, 2.5, False])
def test_a_schedule_that_no_loop_can_count_by(key: str, count: float):
    (found,) = _found(Config(dict(train_cfg={'max_epochs': 12, key: count})))
    assert found.severity == ERROR
    assert found.where == f'train_cfg.{key}' and f'is {count!r}' in found.what


@pytest.mark.parametrize('interval', [1, 2.0, float('inf')])
def test_intervals_that_loops_can_count_by(interval: float):
    """Some of mmdet's configs divide a length: the result is a float such as 12.0."""
    assert not _found(Config(dict(train_cfg=dict(val_interval=interval))))
