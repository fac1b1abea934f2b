"""The configs of docs/own_config.md are the published recipe, and train unchanged."""

from pathlib import Path

from mmdet.testing import demo_mm_inputs
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper
from own_config import on_demo, snippet

import ptnt_mm
from ptnt_mm.config.zoo import copy_config

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
