import math

import pytest
from torch import nn

from ptnt_mm.models.layers.init import draw_weights


def test_linear():
    layer = nn.Linear(400, 300)
    layer.apply(draw_weights)
    assert layer.weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert layer.weight.mean().item() == pytest.approx(0.0, abs=3e-4)
    assert not layer.bias.any()


@pytest.mark.parametrize('groups', [1, 4])
def test_convolution(groups):
    layer = nn.Conv2d(64, 96, 3, groups=groups)
    layer.apply(draw_weights)
    expected = math.sqrt(2 / (3 * 3 * 96 / groups))
    assert layer.weight.std().item() == pytest.approx(expected, rel=0.03)
    assert layer.weight.mean().item() == pytest.approx(0.0, abs=0.03 * expected)
    assert not layer.bias.any()
