"""Random weights, stochastic depth by block, and the description of maps as in timm."""

import math

import pytest
import torch
from torch import nn

from ptnt_mm.models import CPVT, TNT, PyramidTNT, PyramidTNTClassifier
from ptnt_mm.models.backbone import Backbone, drop_path_rates


def build(cls: type[Backbone], **options) -> Backbone:
    with torch.device('meta'):
        return cls(**options)


BACKBONES = {
    'pyramid': (PyramidTNT, dict(arch='tiny', out_indices=(1, 2))),
    'all_stages': (PyramidTNT, dict(arch='ti')),
    'last_stages': (PyramidTNT, dict(arch='ti', out_indices=(-2, -1))),
    'classifier': (PyramidTNTClassifier, dict(arch='tiny')),
    'tnt': (TNT, dict(arch='small', out_indices=(2, -1))),
    'cpvt': (CPVT, dict(arch='tiny', out_indices=(3,))),
}


@pytest.fixture(params=BACKBONES.values(), ids=BACKBONES)
def backbone(request) -> Backbone:
    cls, options = request.param
    return build(cls, **options)


@pytest.mark.slow
def test_feature_info_of_two_stages():
    info = build(PyramidTNT, arch='tiny', out_indices=(1, 2)).feature_info
    assert info.channels() == [160, 320] and info.reduction() == [16, 32]
    assert info.module_name() == ['stages.1', 'stages.2']
    assert info[3] == dict(num_chs=320, reduction=64, module='stages.3', index=3)


def test_random_weights_of_a_linear_layer():
    layer = nn.Linear(400, 300)
    layer.apply(Backbone.init_layer)
    assert layer.weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert layer.weight.mean().item() == pytest.approx(0.0, abs=3e-4)
    assert not layer.bias.any()


@pytest.mark.parametrize('groups', [1, 4])
def test_random_weights_of_a_convolution(groups):
    layer = nn.Conv2d(64, 96, 3, groups=groups)
    layer.apply(PyramidTNT.init_layer)
    expected = math.sqrt(2 / (3 * 3 * 96 / groups))
    assert layer.weight.std().item() == pytest.approx(expected, rel=0.03)
    assert layer.weight.mean().item() == pytest.approx(0.0, abs=0.03 * expected)
    assert not layer.bias.any()


@pytest.mark.parametrize('cls', [TNT, CPVT])
@pytest.mark.parametrize('position', ['learned', 'peg'])
def test_convolutions_of_tnt_and_cpvt_keep_torchs_random_weights(cls, position: str):
    """As in the code of TNT and DeiT: uniform, variance 1 / (3 fan in), biases too."""
    model = cls('small', out_indices=(0,), position=position)
    convolutions = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    assert len(convolutions) == 1 + (position == 'peg')
    for layer in convolutions:
        expected = 1 / math.sqrt(3 * layer.weight[0].numel())
        assert layer.weight.std().item() == pytest.approx(expected, rel=0.05)
        assert layer.bias.std().item() == pytest.approx(expected, rel=0.4)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            assert module.weight.std().item() == pytest.approx(0.02, rel=0.1)
            assert module.bias is None or not module.bias.any()


def test_rates_rise_over_all_blocks():
    rates = drop_path_rates(0.3, (1, 2, 1))
    assert [len(stage) for stage in rates] == [1, 2, 1]
    assert sum(rates, []) == pytest.approx([0.0, 0.1, 0.2, 0.3])


def test_a_single_block_is_never_dropped():
    assert drop_path_rates(0.3, (1,)) == [[0.0]]
