"""A new network is one file: those in toy_*.py are registered here, and known everywhere.

So is a new way to attend, in rotary.py.
"""

from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import DefaultScope

from ptnt_mm.complexity import measure_complexity
from ptnt_mm.models import PlainClassifier, PyramidTNT
from ptnt_mm.models.backbone import Backbone, find_trunk
from ptnt_mm.registry import MODELS
from ptnt_mm.weights.files import describe_checkpoint
from ptnt_mm.weights.identity import describe_network
from ptnt_mm.weights.published import Published, default_cfg, locate
from ptnt_mm.weights.reader.checkpoint_error import CheckpointError
from ptnt_mm.workbench.cli.main import run
from ptnt_mm.workbench.config.build import build_by_name
from ptnt_mm.workbench.config.view import ConfigView
from ptnt_mm.workbench.pages.visualize.recording import record
from ptnt_mm.workbench.pages.visualize.scene import ChosenPlace, RecordedScene
from ptnt_mm.workbench.pages.visualize.sections import SECTIONS

from . import golden
from .rotary import RotaryPosition, turned
from .toy_network import ToyNetwork
from .toy_pyramid import ToyPyramid, WordConvolution


@pytest.fixture(autouse=True)
def _registered(add_relative_position):
    networks = ToyNetwork, ToyPyramid
    for network in networks:
        MODELS.register_module(module=network)
    add_relative_position('rotary', RotaryPosition)
    with DefaultScope.overwrite_default_scope('mmengine'):
        yield
    for network in networks:
        del MODELS.module_dict[network.__name__]


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
    assert describe_network(ToyNetwork('base').state_dict()) == 'ToyNetwork base, 64 px'


def test_published_files_have_names(capsys, publish):
    publish('ToyNetwork small', Published('toy_s', 70.0, 1, 'https://toy.invalid/toy_s.pth'))
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
    assert {part.name for part in counted.parts} == {'stem', 'outer', 'output norms', 'head'}
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
    with pytest.raises(TypeError, match='Half sets arch_prefix but not width, roots:'):
        type('Half', (Backbone,), dict(archs={}, arch_prefix='half_', patch=8, size_step=8))


def test_rates_by_depth():
    model = ToyNetwork('small')
    depths = [model.get_layer_depth(name)[0] for name, _ in model.named_parameters()]
    assert set(depths) == {0, 1, 2, 3}


class TestPyramid:
    """ToyPyramid is all its own, although it inherits from PyramidTNT."""

    def test_its_files_are_its_own(self, tmp_path: Path):
        weights = golden.filled(ToyPyramid('small')).state_dict()
        torch.save(weights, tmp_path / 'x.pth')
        described = dict(describe_checkpoint(str(tmp_path / 'x.pth')))
        assert described['arch'] == 'ToyPyramid small' and described['pretraining'] == '64 px'
        assert described['coverage'].startswith('complete')
        init = dict(type='Pretrained', checkpoint=str(tmp_path / 'x.pth'))
        read = MODELS.build(dict(type='ToyPyramid', arch='s', init_cfg=init))
        read.init_weights()
        assert all(read.state_dict()[key].equal(weight) for key, weight in weights.items())
        other = MODELS.build(dict(type='PyramidTNT', arch='ti', init_cfg=init))
        with pytest.raises(CheckpointError, match='ToyPyramid small, 64 px'):
            other.init_weights()

    def test_its_classifier_is_counted_part_by_part(self):
        model = build_by_name('toy_pyramid_s')
        assert isinstance(model, PlainClassifier) and isinstance(find_trunk(model), ToyPyramid)
        counted = measure_complexity(model, (64, 96))
        found = {part.name for part in counted.parts}
        assert {'stem', 'merges', 'stage 1 inner', 'stage 4 outer', 'head'} <= found
        assert counted.total.parameters == sum(weight.numel() for weight in model.parameters())

    def test_its_words_are_drawn_and_its_mixer_is_named(self):
        drawn = drawn_by(golden.filled(ToyPyramid('small')).eval())
        assert len(drawn['words']) == 4 and drawn['attention'][0].panels
        (heading, panels) = drawn['inner_attention'][0][:2]
        assert not panels
        assert (
            heading == f'stage 1, block 1: words are mixed by {WordConvolution.__name__}, '
            'without attention'
        )


class TestRotaryPosition:
    """An encoding that changes queries and keys, and adds nothing to their products."""

    def test_it_attends_in_its_own_way(self, micro_arch: dict):
        options = dict(arch=micro_arch, drop_path_rate=0.0)
        network = golden.filled(PyramidTNT(relative_position='rotary', **options)).eval()
        plain = golden.filled(PyramidTNT(relative_position='none', **options)).eval()
        assert network.state_dict().keys() == plain.state_dict().keys(), 'it has no tables'
        image = golden.image(2, 96, 64)
        found, without = network(image), plain(image)
        assert [level.shape for level in found] == [level.shape for level in without]
        assert not torch.allclose(found[0], without[0], atol=1e-3)
        sum(level.square().mean() for level in network.train()(image)).backward()
        assert all(weight.grad is not None for weight in network.parameters())

    def test_turning_depends_on_the_distance_alone(self):
        x, y = torch.randn(2, 1, 1, 1, 8)
        x, y = (turned(z.expand(-1, -1, 20, -1), (4, 5), (1, 1))[0, 0] for z in (x, y))
        products = (x @ y.T).unflatten(0, (4, 5)).unflatten(2, (4, 5))
        torch.testing.assert_close(products[0, 0, 1, 2], products[2, 1, 3, 3])

    def test_it_is_named_and_not_drawn(self, micro_arch: dict):
        network = PyramidTNT(micro_arch, relative_position='rotary').eval()
        drawn = drawn_by(golden.filled(network))
        heading = 'stage 1, block 1: the attention of Rotated cannot be drawn'
        assert drawn['attention'][0][:2] == (heading, [])
        assert drawn['all_attention'] == [] and drawn['inner_attention'][0].panels


def drawn_by(network: Backbone) -> dict[str, list]:
    """The rows of a network's page, by section; without t-SNE, which is slow."""
    recording = record(network, network, golden.image(1, 64, 96), (1.0, 1.0))
    scene = RecordedScene({'': recording}, ChosenPlace('the middle', (48.0, 32.0, 0, 0), False))
    return {s.name: s.rows(scene) for s in SECTIONS if s.name != 'tsne'}
