"""Attention compared with loops, and the fused form with the published one."""

import math
from functools import partial

import pytest
import torch
from torch import Tensor

from ptnt_mm.models.layers.attention import (
    EagerOuterAttention,
    FusedOuterAttention,
    InnerAttention,
    OuterAttention,
)
from ptnt_mm.models.layers.relative_position import FlatRelativePosition, GridRelativePosition

from .. import golden

DIM, HEADS, RATIO = 12, 3, 2
NATIVE, NATIVE_KEYS = (6, 6), (3, 3)
GRIDS = [NATIVE, (5, 7), (1, 1), (4, 9)]
ATTENTIONS = [EagerOuterAttention, FusedOuterAttention]


def build(cls: type, ratio: int = RATIO, attn_drop: float = 0.0) -> OuterAttention:
    """An attention in double precision with golden weights."""
    return golden.filled(cls(DIM, HEADS, ratio, attn_drop, proj_drop=0.0)).double()


def key_hw(hw: tuple[int, int], ratio: int = RATIO) -> tuple[int, int]:
    return math.ceil(hw[0] / ratio), math.ceil(hw[1] / ratio)


def tokens(hw: tuple[int, int], batch: int = 2) -> Tensor:
    return torch.randn(batch, math.prod(hw), DIM, dtype=torch.float64)


def relative_table() -> Tensor:
    shape = 1, HEADS, math.prod(NATIVE), math.prod(NATIVE_KEYS)
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def by_hand(attn, queries: Tensor, keys: Tensor, bias: Tensor) -> Tensor:
    """One head of one image at a time, with all logits."""
    dim = queries.shape[2]
    width = dim // attn.num_heads
    key_rows, value_rows = attn.kv.weight[:dim], attn.kv.weight[dim:]
    images = []
    for image, image_keys in zip(queries, keys, strict=True):
        heads = []
        for head in range(attn.num_heads):
            rows = slice(head * width, (head + 1) * width)
            q = image @ attn.q.weight[rows].T
            k, v = image_keys @ key_rows[rows].T, image_keys @ value_rows[rows].T
            heads.append((q @ k.T / math.sqrt(width) + bias[head]).softmax(dim=1) @ v)
        images.append(torch.cat(heads, dim=1) @ attn.proj.weight.T + attn.proj.bias)
    return torch.stack(images)


def run(cls: type, position: type | None, hw: tuple[int, int]) -> list[Tensor]:
    """The output for random tokens and a random table, and the gradients of all inputs."""
    torch.manual_seed(1)
    attn, outer, table = build(cls), tokens(hw).requires_grad_(), relative_table()
    bias, sources = None, [outer, *attn.parameters()]
    if position is not None:
        factors = position(NATIVE, NATIVE_KEYS).factors(table, hw, key_hw(hw))
        bias = attn.prepare_bias(factors)
        sources.append(table)
    found = attn(outer, hw, bias)
    return [found, *torch.autograd.grad(found.square().sum(), sources)]


@pytest.mark.parametrize('hw', GRIDS)
@pytest.mark.parametrize('cls', ATTENTIONS)
def test_outer_attention_is_what_the_spec_writes(cls, hw):
    attn, outer, table = build(cls), tokens(hw), relative_table()
    factors = GridRelativePosition(NATIVE, NATIVE_KEYS).factors(table, hw, key_hw(hw))
    found = attn(outer, hw, attn.prepare_bias(factors))
    expected = by_hand(attn, outer, attn.key_tokens(outer, hw), factors.bias()[0])
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize('hw', GRIDS)
@pytest.mark.parametrize('position', [GridRelativePosition, FlatRelativePosition, None])
def test_fused_equals_eager_with_all_gradients(position, hw):
    eager, fused = (run(cls, position, hw) for cls in ATTENTIONS)
    torch.testing.assert_close(fused, eager, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('hw', GRIDS)
@pytest.mark.parametrize('ratio', [2, 4])
def test_border_keys_average_their_real_tokens(ratio, hw):
    attn, outer = build(EagerOuterAttention, ratio), tokens(hw)
    grid = outer.unflatten(1, hw)
    windows = [
        grid[:, y : y + ratio, x : x + ratio].mean(dim=(1, 2))
        for y in range(0, hw[0], ratio)
        for x in range(0, hw[1], ratio)
    ]
    found = attn.key_tokens(outer, hw)
    assert found.shape[1] == math.prod(key_hw(hw, ratio))
    torch.testing.assert_close(found, attn.norm(attn.linear(torch.stack(windows, dim=1))))


def test_without_reduction_keys_are_the_tokens():
    attn, outer = build(EagerOuterAttention, ratio=1), tokens((5, 7))
    assert attn.key_tokens(outer, (5, 7)) is outer
    assert not hasattr(attn, 'linear')


def test_inner_attention_stays_inside_a_sentence():
    attn = golden.filled(InnerAttention(DIM, HEADS, attn_drop=0.0, proj_drop=0.0)).double()
    words = torch.randn(5, 16, DIM, dtype=torch.float64)
    none = torch.zeros(HEADS, 1, 1, dtype=torch.float64)
    torch.testing.assert_close(attn(words), by_hand(attn, words, words, none))


@pytest.mark.parametrize('cls', ATTENTIONS)
def test_dropout_of_weights_keeps_the_mean(cls):
    """Over 4000 copies of one image the standard error is about 0.01."""
    attn, one = build(cls, attn_drop=0.3), tokens((2, 3), batch=1)
    found = attn(one.expand(4000, -1, -1), (2, 3), None)
    expected = attn.eval()(one, (2, 3), None)
    assert found.std(dim=0).min() > 0.01
    torch.testing.assert_close(found.mean(dim=0), expected[0], rtol=0, atol=0.05)


@pytest.mark.parametrize(
    'build_attn', [InnerAttention, partial(EagerOuterAttention, sr_ratio=1)], ids=['inner', 'outer']
)
def test_dropout_after_the_projection(build_attn):
    attn = build_attn(DIM, HEADS, attn_drop=0.0, proj_drop=0.5)
    where = (tokens((4, 4)).float(), *([(4, 4), None] if isinstance(attn, OuterAttention) else []))
    assert (attn(*where) == 0).float().mean().item() == pytest.approx(0.5, abs=0.13)
    assert not (attn.eval()(*where) == 0).any()


def test_inner_attention_in_parts_is_the_same(monkeypatch):
    attn = golden.filled(InnerAttention(DIM, HEADS, 0.0, 0.0)).double()
    words = torch.randn(10, 16, DIM, dtype=torch.float64)
    whole = attn(words)
    monkeypatch.setattr(InnerAttention, 'max_batch', 4)
    assert torch.allclose(attn(words), whole, rtol=0, atol=1e-12)
