"""The experiments of the papers: every row builds, learns, and costs what the paper prints."""

import shlex

import pytest
import torch
from configs.models import narrow
from mmdet.testing import demo_mm_inputs
from mmengine.registry import init_default_scope
from repository import ROOT
from torch import nn

from ptnt_mm.complexity import measure_complexity
from ptnt_mm.models.backbone import Backbone
from ptnt_mm.workbench.config.build import build_model
from ptnt_mm.workbench.config.read import parse_options, read_config
from reproduction.experiments import Experiment, commands, experiments_page, read_tables

COMMANDS = list(commands(read_tables()))
# tests/configs trains a step of every config as it is.
CHANGED = {(row.config, row.training_options): row for row, _ in COMMANDS if row.training_options}
COUNTED = [row for row, _ in COMMANDS if row.macs and row.options]


def build(row: Experiment, size: int, narrow_to: dict | None = None) -> nn.Module:
    config = read_config(row.config, parse_options(row.training_options))
    config.model.backbone.init_cfg = None
    if config.model.backbone.get('pretrain_img_size') is None and size != 224:
        config.model.backbone.pretrain_img_size = size
    if narrow_to is not None:
        config = narrow(config, narrow_to)
    init_default_scope(config.default_scope)
    return build_model(config)


def test_the_page_is_up_to_date():
    hint = 'write it again: python tools/reproduce.py collect'
    page = (ROOT / 'docs' / 'research' / 'experiments.md').read_text()
    assert page == experiments_page(read_tables()), hint


def test_different_runs_have_different_work_dirs():
    runs = {
        (row.config, row.training_options): words[words.index('--work-dir') + 1]
        for row, words in COMMANDS
        if '--work-dir' in words
    }
    assert len(set(runs.values())) == len(runs)
    for row, words in COMMANDS:
        if row.test:
            options = row.training_options
            expected = runs.get((row.config, options), f'work_dirs/{row.config}')
            assert words[:4] == ['ptnt', 'test', row.config, f'{expected}/epoch_300.pth']
    lines = [shlex.join(words) for row, words in COMMANDS if row.options]
    assert all(' --cfg-options ' in line for line in lines)


@pytest.mark.parametrize(
    'row', [row for row in CHANGED.values() if row.config.startswith('classifier')], ids=str
)
def test_a_changed_classifier_learns(row: Experiment):
    """At full width; sizes of PyramidTNT are multiples of 64."""
    with torch.device('meta'):
        model = build(row, 64)
    # Numbers do not matter: to draw them takes longer than the rest.
    model.to_empty(device='cpu')
    assert isinstance(model.backbone, Backbone)
    model.backbone(torch.randn(1, 3, 64, 64))[-1].square().mean().backward()
    lacking = [
        name
        for name, parameter in model.backbone.named_parameters()
        if parameter.requires_grad and parameter.grad is None
    ]
    assert not lacking
    assert model.head.in_channels == model.backbone.out_channels[-1]


@pytest.mark.parametrize(
    'row', [row for row in CHANGED.values() if not row.config.startswith('classifier')], ids=str
)
def test_a_changed_detector_learns(row: Experiment, micro_arch: dict):
    model = build(row, 224, micro_arch)
    model.init_weights()
    data = model.data_preprocessor(demo_mm_inputs(1, [[3, 97, 131]], num_classes=4), training=True)
    total, _ = model.parse_losses(model(**data, mode='loss'))
    total.backward()
    assert torch.isfinite(total)
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)


@pytest.mark.slow
@pytest.mark.parametrize('row', COUNTED, ids=str)
def test_it_costs_what_the_paper_prints(row: Experiment):
    """To half a percent, or to the last digit, which the papers partly round down."""
    total = measure_complexity(build(row, 224), (224, 224)).total
    if row.params:
        assert total.parameters / 1e6 == pytest.approx(row.params, rel=0.005, abs=0.05)
    assert total.multiply_adds / 1e9 == pytest.approx(row.macs, rel=0.01, abs=0.06)
