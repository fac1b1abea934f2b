"""A new network is one file: the one in toy_network.py is registered here, and known everywhere."""

from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope

from ptnt_mm.cli.main import run
from ptnt_mm.complexity import build_by_name, measure_complexity
from ptnt_mm.config.view import ConfigView
from ptnt_mm.models import PlainClassifier
from ptnt_mm.models.backbone import Backbone, find_trunk
from ptnt_mm.pages.visualize.recording import record
from ptnt_mm.registry import MODELS
from ptnt_mm.weights.files import describe_checkpoint
from ptnt_mm.weights.identity import looks_like
from ptnt_mm.weights.published import FILES, Published, default_cfg, locate
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError

from . import golden
from .toy_network import ToyNetwork


@pytest.fixture(autouse=True)
def _registered():
    MODELS.register_module(module=ToyNetwork)
    with DefaultScope.overwrite_default_scope('mmengine'):
        yield
    del MODELS.module_dict['ToyNetwork']


@pytest.fixture
def detector_file(tmp_path: Path) -> Path:
    """The file of a wrapped detector with the network, trained at 96 pixels."""
    weights = golden.filled(ToyNetwork('small', pretrain_img_size=96)).state_dict()
    named = {f'module.backbone.{key}': weight for key, weight in weights.items()}
    torch.save(dict(state_dict=named | {'module.head.x': torch.ones(1)}), tmp_path / 'toy.pth')
    return tmp_path / 'toy.pth'


def test_a_config_loads_its_weights_from_a_detector(detector_file: Path):
    init = dict(type='Pretrained', checkpoint=str(detector_file))
    model = MODELS.build(dict(type='ToyNetwork', arch='s', init_cfg=init))
    model.init_weights()
    trained = golden.filled(ToyNetwork('small', pretrain_img_size=96)).eval()
    assert torch.equal(model.toy_stem[0].weight, trained.toy_stem[0].weight)
    assert model.outer_pos.shape == (1, 16, 16) and trained.outer_pos.shape == (1, 36, 16)


def test_a_checkpoint_is_recognised(detector_file: Path):
    described = dict(describe_checkpoint(str(detector_file)))
    assert described['arch'] == 'ToyNetwork small'
    assert described['pretraining'] == '96 px'
    assert described['coverage'].startswith('complete')
    assert described['unused'].startswith('module')


def test_a_wrong_file_is_named_by_its_network(detector_file: Path):
    init = dict(type='Pretrained', checkpoint=str(detector_file))
    other = MODELS.build(dict(type='CPVT', arch='tiny', init_cfg=init))
    with pytest.raises(CheckpointError, match='ToyNetwork small, 96 px'):
        other.init_weights()
    assert looks_like(ToyNetwork('base').state_dict()) == 'ToyNetwork base, 64 px'


def test_published_files_have_names(capsys, monkeypatch):
    file = Published('toy_s', 70.0, 1, 'https://toy.invalid/toy_s.pth')
    monkeypatch.setitem(FILES, 'ToyNetwork small', (file,))
    assert locate('toy_s') == 'https://toy.invalid/toy_s.pth'
    assert default_cfg('toy_s')['weights'] == 'toy_s'
    assert run('weights', []) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith('toy_s'))
    assert 'ToyNetwork small' in line


@pytest.mark.parametrize('name', ['toy_small', 'toy_s'])
def test_its_classifier_is_counted_part_by_part(name: str):
    model = build_by_name(name)
    assert isinstance(model, PlainClassifier) and isinstance(find_trunk(model), ToyNetwork)
    counted = measure_complexity(model, (96, 96))
    # Other is the mean of the tokens, which the classifier itself computes.
    parts = {part.name for part in counted.parts}
    assert parts == {'stem', 'outer', 'output norms', 'head', 'other'}
    assert counted.total.parameters == sum(weight.numel() for weight in model.parameters())


def test_checks_treat_it_as_one_of_the_family():
    backbone = dict(type='ToyNetwork', arch='small')
    config = Config(dict(model=dict(type='PlainClassifier', backbone=backbone)))
    assert ConfigView(config).is_of_family


def test_its_blocks_are_recorded():
    model = golden.filled(ToyNetwork('small')).eval()
    recording = record(model, model, golden.image(1, 64, 96), (1.0, 1.0))
    assert [block.name for block in recording.blocks] == ['block 1', 'block 2']
    assert [block.hw for block in recording.blocks] == [(4, 6)] * 2


def test_what_it_does_not_declare_is_named():
    with pytest.raises(
        TypeError, match='Half sets recognised_by but not arch_prefix, width, roots:'
    ):
        type('Half', (Backbone,), dict(archs={}, recognised_by='half', patch=8, size_step=8))


def test_rates_by_depth():
    model = ToyNetwork('small')
    depths = [model.get_layer_depth(name)[0] for name, _ in model.named_parameters()]
    assert set(depths) == {0, 1, 2, 3}
