"""The configs of docs/own_config.md are the published recipe, and train unchanged."""

import ast
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from mmdet.testing import demo_mm_inputs
from mmengine.config import Config
from mmengine.optim import OptimWrapper, build_optim_wrapper
from own_config import on_demo, snippet
from repository import ROOT

import ptnt_mm
from ptnt_mm.registry import HOOKS
from ptnt_mm.utils.findings import Severity
from ptnt_mm.workbench.check.network import check_strides
from ptnt_mm.workbench.config.settings import dicts_within
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.config.zoo import copy_config

from .models import build


def _unscoped(settings: dict) -> dict:
    return {key: value for key, value in settings.items() if key != '_scope_'}


def test_a_copied_config_is_inherited(tmp_path: Path):
    copy_config('retinanet_ptnt_s_1x', tmp_path)
    config = Config.fromfile(snippet(tmp_path, 'retinanet_ptnt_s_1x.py'))
    ours = ptnt_mm.get_config('retinanet_ptnt_s_1x')
    assert config.model.backbone.pop('init_cfg').type == 'Pretrained'
    assert config.to_dict() == ours.to_dict()


def test_the_parts_are_the_recipe(tmp_path: Path):
    config = Config.fromfile(snippet(tmp_path, 'mmdet::'))
    ours = ptnt_mm.get_config('retinanet_ptnt_s_1x')
    assert config.model.backbone.pop('init_cfg').type == 'Pretrained'
    for key in ('model', 'train_dataloader'):
        assert config[key] == ours[key], key
    assert _unscoped(config.train_cfg) == ours.train_cfg
    assert [_unscoped(one) for one in config.param_scheduler] == ours.param_scheduler
    ours.optim_wrapper.pop('type')
    assert config.optim_wrapper == ours.optim_wrapper
    assert config.auto_scale_lr.base_batch_size == ours.auto_scale_lr.base_batch_size


def test_the_readme_has_the_same_network(tmp_path: Path):
    """Without what the page adds: the weights, their normalisation and the optimizer."""
    config = Config.fromfile(snippet(tmp_path, 'mmdet::', page=ROOT / 'README.md'))
    whole = Config.fromfile(snippet(tmp_path, 'mmdet::'))
    del whole.model.backbone['init_cfg'], whole.model.backbone['drop_path_rate']
    assert config.model.backbone == whole.model.backbone
    assert config.model.neck == whole.model.neck
    assert config.custom_imports == whole.custom_imports


OK = Severity.OK
DETECTORS = ('retinanet', 'mask_rcnn', 'deformable_detr', 'rtmdet')


def smallest(folder: Path, detector: str) -> Config:
    """The page's second config of a detector, or its only one, with the smallest arch."""
    config = Config.fromfile(snippet(folder, f'mmdet::{detector}/', -1))
    config.model.backbone.update(arch='tiny', init_cfg=None)
    channels = [80, 160, 320, 320]
    config.model.neck.in_channels = channels[: len(config.model.neck.in_channels)]
    for _, part in dicts_within(config.model, 'model'):
        if part.get('type') == 'SyncBN':  # it needs several processes
            part['type'] = 'BN'
    return config


@pytest.mark.parametrize('detector', DETECTORS)
def test_other_detectors_take_a_step_at_their_maps_strides(tmp_path: Path, detector: str):
    config = smallest(tmp_path, detector)
    model = build(config).train()
    model.init_weights()  # some heads of mmdet are uninitialised until then
    assert {finding.severity for finding in check_strides(ConfigView(config), model)} <= {OK}
    data = demo_mm_inputs(2, [[3, 64, 64]] * 2, num_classes=80, with_mask=detector == 'mask_rcnn')
    model.train()
    optimizer = OptimWrapper(torch.optim.SGD(model.parameters(), lr=1e-4))
    assert model.train_step(data, optimizer)['loss'].isfinite()


@pytest.mark.parametrize(
    ('detector', 'change', 'where'),
    [
        ('retinanet', 'bbox_head.anchor_generator.strides=[4, 8, 16, 32, 64]', 'prior_generator'),
        ('mask_rcnn', 'rpn_head.anchor_generator.strides=[4, 8, 16, 32, 64]', 'rpn_head'),
        ('mask_rcnn', 'roi_head.mask_roi_extractor.featmap_strides=[4, 8, 16, 32]', 'mask_roi'),
        ('rtmdet', 'backbone.out_indices=[1, 2, 3]', 'prior_generator'),
    ],
)
def test_wrong_strides_are_warned_about_before_the_first_iteration(
    tmp_path: Path, caplog, detector: str, change: str, where: str
):
    config = smallest(tmp_path, detector)
    key, _, value = change.partition('=')
    config.merge_from_dict({f'model.{key}': ast.literal_eval(value)})
    if key == 'backbone.out_indices':
        config.model.neck.in_channels = [160, 320, 320]
    model = build(config).train()
    runner = SimpleNamespace(cfg=config, model=model, logger=logging.getLogger('strides'))
    HOOKS.build(dict(type='HealthHook')).before_train(runner)
    (said,) = (record.message for record in caplog.records)
    assert where in said and 'expects strides' in said and 'write ' in said and model.training


def test_it_takes_a_step_on_the_demo(tmp_path: Path):
    config = Config.fromfile(on_demo(tmp_path))
    model = build(config).train()
    model.init_weights()
    wrapper = build_optim_wrapper(model, config.optim_wrapper)
    data = demo_mm_inputs(2, [[3, 64, 96], [3, 64, 96]], num_classes=4)
    before = model.bbox_head.retina_cls.weight.detach().clone()
    losses = model.train_step(data, wrapper)
    assert losses['loss'].isfinite()
    assert not before.equal(model.bbox_head.retina_cls.weight)
