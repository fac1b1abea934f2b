"""The configs of docs/training.md load, freeze and scale as described."""

from pathlib import Path

import pytest
from manual import ROOT, blocks
from mmengine.config import Config
from mmengine.optim import build_optim_wrapper

from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.zoo import copy_config

PAGE = [block.text for block in blocks(ROOT / 'docs' / 'training.md') if block.is_code]


def read(tmp_path: Path, words: str, base: str) -> Config:
    """The config of the page that contains some words, on top of one of the package."""
    (text,) = [text for text in PAGE if words in text and 'import' not in text]
    copy_config(base, tmp_path)
    if '_base_' not in text:
        text = f"_base_ = '{base}.py'\n{text}"
    file = tmp_path / 'finetune.py'
    file.write_text(text)
    return Config.fromfile(file)


def test_the_example_freezes_the_first_stage_and_ends_with_its_schedule(tmp_path: Path):
    config = read(tmp_path, 'load_from =', 'custom_coco')
    assert config.param_scheduler[-1].end == config.train_cfg.max_epochs
    stages = build_model(config).backbone.stages
    learns = [any(p.requires_grad for p in stage.parameters()) for stage in stages]
    assert learns[:2] == [False, True]


def test_a_lower_rate_for_the_backbone_has_no_exceptions(tmp_path: Path):
    config = read(tmp_path, 'lr_mult=0.1', 'demo_retinanet_ptnt_ti')
    model, base = build_model(config), config.optim_wrapper.optimizer.lr
    groups = build_optim_wrapper(model, config.optim_wrapper).param_groups
    rates = {id(p): group['lr'] / base for group in groups for p in group['params']}
    for name, parameter in model.named_parameters():
        expected = 0.1 if name.startswith('backbone.') else 1
        assert rates[id(parameter)] == pytest.approx(expected), name
