"""Gradients, dropout and initial weights: the basis of training."""

import math

import pytest
import torch
from torch import nn

from ptnt_mm.models import PyramidTNT
from ptnt_mm.models.blocks import DropPath

from . import golden

pytestmark = pytest.mark.slow


def backward(model: PyramidTNT, image: torch.Tensor) -> None:
    sum(output.square().mean() for output in model(image)).backward()


@pytest.mark.parametrize('attention', ['eager', 'fused'])
def test_gradients_keep_their_direction_under_bfloat16_autocast(attention):
    """Running statistics, since before batch statistics a convolution's bias has no gradient."""
    model = PyramidTNT('tiny', attention=attention, drop_path_rate=0.0, norm_eval=True)
    gradients = []
    for autocast in (False, True):
        model.zero_grad()
        with torch.autocast('cpu', torch.bfloat16, enabled=autocast):
            backward(model, golden.image(2, 72, 100))
        gradients.append({name: p.grad.flatten() for name, p in model.named_parameters()})
    for name, expected in gradients[0].items():
        assert torch.cosine_similarity(gradients[1][name], expected, dim=0) > 0.9, name


def test_drop_path_rises_over_all_blocks(micro_arch):
    model = PyramidTNT(micro_arch | dict(depths=(2, 3, 2, 2)), drop_path_rate=0.4)
    rates = [module.rate for module in model.modules() if isinstance(module, DropPath)]
    assert rates == pytest.approx([0.05 * block for block in range(9)])


def test_drop_path_does_not_depend_on_the_choice_of_outputs(micro_arch):
    model = PyramidTNT(micro_arch, out_indices=(1,), drop_path_rate=0.4)
    rates = [module.rate for module in model.modules() if isinstance(module, DropPath)]
    assert rates == pytest.approx([0.0, 0.1, 0.2])


def test_dropout_acts_on_the_sentence_table_with_one_mask_for_the_batch(build_micro):
    model = build_micro(drop_rate=0.5)
    calls = []
    model.pos_drop.register_forward_hook(lambda _, args, out: calls.append((args[0], out)))
    model(golden.image(3, 128, 128))
    ((table, dropped),) = calls
    assert torch.equal(table, model.outer_pos)
    gone = dropped == 0
    assert gone.float().mean().item() == pytest.approx(0.5, abs=0.06)
    torch.testing.assert_close(dropped[~gone], 2 * table[~gone])


def test_fresh_weights():
    """``test_backbone.py`` tests the layers; this test checks that all of them are reached."""
    model = PyramidTNT('tiny', with_se=True, out_norms=True)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            assert_normal(module.weight, 0.02)
        if isinstance(module, nn.Conv2d):
            fan_out = module.out_channels * math.prod(module.kernel_size)
            assert_normal(module.weight, math.sqrt(2 / fan_out))
        if isinstance(module, (nn.LayerNorm, nn.BatchNorm2d)):
            assert (module.weight == 1).all()
            assert module.eps == 1e-5
        if getattr(module, 'bias', None) is not None:
            assert not module.bias.any()
    assert_normal(model.outer_pos, 0.02)
    assert_normal(model.inner_pos, 0.02)
    for stage in model.stages:
        assert_normal(stage.relative_pos, 1.0)


def assert_normal(values: torch.Tensor, std: float) -> None:
    """Mean 0 and the given deviation, to five standard errors."""
    margin = 5 / math.sqrt(values.numel())
    assert abs(values.mean().item()) <= margin * std
    assert values.std().item() == pytest.approx(std, rel=margin)
