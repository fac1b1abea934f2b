"""Gradients, dropout and initial weights: the basis of training."""

import itertools
import math

import pytest
import torch
from torch import nn

from ptnt_mm.models import PyramidTNT
from ptnt_mm.models.blocks import DropPath

from . import golden

pytestmark = pytest.mark.slow

SUBSETS = [indices for size in range(1, 5) for indices in itertools.combinations(range(4), size)]


def backward(model: PyramidTNT, image: torch.Tensor) -> None:
    sum(output.square().mean() for output in model(image)).backward()


@pytest.mark.parametrize(
    'options',
    [
        *(dict(out_indices=indices) for indices in SUBSETS),
        dict(attention='eager'),
        dict(out_norms=True),
        dict(relative_position='flat'),
        dict(relative_position='none'),
        dict(with_se=True),
        dict(with_cp=True),
    ],
    ids=str,
)
def test_every_parameter_gets_a_gradient(build_micro, options):
    """A parameter without one stops DistributedDataParallel."""
    # Drop path might drop a branch for both images.
    model = build_micro(drop_path_rate=0.0, **options)
    backward(model, golden.image(2, 61, 93))
    without = [
        name
        for name, parameter in model.named_parameters()
        if parameter.grad is None or not parameter.grad.any()
    ]
    assert not without


@pytest.mark.parametrize('attention', ['eager', 'fused'])
def test_recomputing_gives_the_same_gradients(build_micro, attention):
    """Also with everything random switched on, and with frozen stages."""
    gradients = []
    for with_cp in (False, True):
        model = build_micro(
            with_cp=with_cp,
            attention=attention,
            drop_rate=0.1,
            attn_drop_rate=0.1,
            drop_path_rate=0.3,
            frozen_stages=1,
        )
        torch.manual_seed(1)
        backward(model, golden.image(2, 61, 93))
        gradients.append({name: p.grad for name, p in model.named_parameters()})
    torch.testing.assert_close(gradients[1], gradients[0])


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


@pytest.mark.parametrize('attention', ['eager', 'fused'])
def test_evaluation_is_not_random(build_micro, attention):
    model = build_micro(
        attention=attention, drop_rate=0.5, attn_drop_rate=0.5, drop_path_rate=0.5
    ).eval()
    image = golden.image(2, 64, 64)
    torch.testing.assert_close(model(image), model(image), rtol=0, atol=0)


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


@pytest.mark.parametrize('with_cp', [False, True])
@pytest.mark.parametrize('options', [{}, dict(attention='eager'), dict(out_norms=True)], ids=str)
def test_autocast_gives_all_stages_one_precision(build_micro, options, with_cp):
    """And each parameter gets its own gradient."""
    model = build_micro(with_cp=with_cp, **options)
    image = golden.image(2, 61, 93)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        levels, outputs = model.forward_tokens(image), model(image)
    tokens = [tensor for inner, outer, _ in levels for tensor in (inner, outer)]
    assert {tensor.dtype for tensor in (*tokens, *outputs)} == {torch.bfloat16}
    sum(output.float().square().mean() for output in outputs).backward()
    assert {parameter.grad.dtype for parameter in model.parameters()} == {torch.float32}


@pytest.mark.parametrize('attention', ['eager', 'fused'])
def test_gradients_by_torch_func(build_micro, attention):
    model = build_micro(attention=attention, drop_path_rate=0.0).double().eval()
    image = golden.image(2, 61, 93).double()

    def loss(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        outputs = torch.func.functional_call(model, parameters, (image,))
        return sum(output.square().mean() for output in outputs)

    parameters = dict(model.named_parameters())
    found = torch.func.grad(loss)(parameters)
    expected = torch.autograd.grad(loss(parameters), list(parameters.values()))
    for name, gradient in zip(parameters, expected, strict=True):
        torch.testing.assert_close(found[name], gradient)
