import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.blocks import (
    DropPath,
    Mlp,
    NarrowNorm,
    NestedBlock,
    OuterBlock,
    SqueezeExcite,
    build_norm,
    is_batch_norm,
)
from ptnt_mm.models.kernels.forms import Form

from . import golden

HW = (4, 5)
INNER_DIM, OUTER_DIM = 4, 8


def nested(eager: bool = True, **options) -> NestedBlock:
    block = NestedBlock(INNER_DIM, OUTER_DIM, 2, 2, eager=eager, **options)
    return golden.filled(block)


def form(block: OuterBlock, outer: Tensor) -> Form:
    """The form of attention that a stage of such blocks has."""
    return block.outer_attn.form(None, outer)


def tokens(batch: int) -> tuple[Tensor, Tensor]:
    return torch.randn(batch * 20, 16, INNER_DIM), torch.randn(batch, 20, OUTER_DIM)


def test_a_nested_block_is_what_the_spec_writes():
    block, (inner, outer) = nested().eval(), tokens(2)

    def over_sentences(norm, words):
        return norm(words.reshape(40, 16 * INNER_DIM)).reshape(40, 16, INNER_DIM)

    y = inner + block.inner_attn(over_sentences(block.inner_norm1, inner))
    y = y + block.inner_mlp(over_sentences(block.inner_norm2, y))
    sentence = over_sentences(block.proj_norm1, y).reshape(2, 20, 16 * INNER_DIM)
    z = outer + block.proj_norm2(sentence @ block.proj.weight.T)
    z = z + block.outer_attn(block.outer_norm1(z), HW, form(block, outer))
    z = z + block.outer_mlp(block.outer_norm2(z))
    torch.testing.assert_close(block(inner, outer, HW, form(block, outer)), (y, z))


def test_an_outer_block_is_what_the_spec_writes():
    block = golden.filled(OuterBlock(OUTER_DIM, 2, eager=True)).eval()
    inner, outer = tokens(2)
    new_inner, new_outer = block(inner, outer, HW, form(block, outer))
    z = outer + block.outer_attn(block.outer_norm1(outer), HW, form(block, outer))
    torch.testing.assert_close(new_outer, z + block.outer_mlp(block.outer_norm2(z)))
    assert new_inner is inner


def test_squeeze_and_excitation():
    se = golden.filled(SqueezeExcite(OUTER_DIM))
    norm, squeeze, _, expand, _ = se.fc
    t = torch.randn(3, 20, OUTER_DIM)
    gate = torch.tanh(expand(F.relu(squeeze(norm(t.mean(dim=1))))))
    assert squeeze.out_features == OUTER_DIM // 4
    torch.testing.assert_close(se(t), t + gate[:, None] * t)


def test_squeeze_and_excitation_comes_before_drop_path():
    block, (inner, outer) = nested(with_se=True).eval(), tokens(2)
    without = nested().eval()
    without.load_state_dict(block.state_dict(), strict=False)
    attended = without.outer_mlp.register_forward_hook(lambda _, args, out: block.se_layer(out))
    expected = without(inner, outer, HW, form(block, outer))
    attended.remove()
    torch.testing.assert_close(block(inner, outer, HW, form(block, outer)), expected)


@pytest.mark.parametrize('eager', [True, False])
def test_drop_path_acts_on_each_sentence_for_words_and_on_each_image_for_sentences(eager):
    block = nested(drop_path=0.5, eager=eager)
    branches = []
    block.drop_path.register_forward_hook(
        lambda _, args, out: branches.append((args[1], out - args[0]))
    )
    inner, outer = tokens(32)
    block(inner, outer, HW, form(block, outer))
    assert [len(branch) for branch, _ in branches] == [32 * 20, 32 * 20, 32, 32]
    for branch, dropped in branches:
        gone = (dropped == 0).flatten(1).all(dim=1)
        assert 0 < gone.sum() < len(gone)
        torch.testing.assert_close(dropped[~gone], 2 * branch[~gone], atol=1e-5, rtol=1e-5)


def test_words_reach_their_sentence_without_drop_path():
    block, (inner, outer) = nested(drop_path=1 - 1e-9), tokens(2)
    new_inner, new_outer = block(inner, outer, HW, form(block, outer))
    torch.testing.assert_close(new_inner, inner)
    sentence = block.proj(block.proj_norm1(inner).reshape(2, 20, -1))
    torch.testing.assert_close(new_outer, outer + block.proj_norm2(sentence))


def test_mlp_is_an_exact_gelu_between_linears_with_dropout_after_both():
    mlp = golden.filled(Mlp(4, 16, drop=0.0))
    x = torch.randn(2, 3, 4)
    hidden = x @ mlp.fc1.weight.T + mlp.fc1.bias
    hidden = 0.5 * hidden * (1 + torch.erf(hidden / 2**0.5))
    torch.testing.assert_close(mlp(x), hidden @ mlp.fc2.weight.T + mlp.fc2.bias)


def test_dropout_of_an_mlp_acts_after_both_linears():
    mlp = Mlp(64, 256, drop=0.25)
    shapes = []
    mlp.drop.register_forward_hook(lambda _, args, out: shapes.append(out.shape))
    dropped = mlp(torch.randn(50, 3, 64))
    assert shapes == [(150, 256), (150, 64)]
    # 9600 draws: five standard deviations are 0.022.
    assert (dropped == 0).float().mean().item() == pytest.approx(0.25, abs=0.022)


@pytest.mark.parametrize('rates', [dict(drop_rate=0.5), dict(attn_drop_rate=0.5)])
def test_dropout_rates_reach_both_transformers(rates):
    block, (inner, outer) = nested(**rates), tokens(2)
    first, second = (
        block(inner, outer, HW, form(block, outer)),
        block(inner, outer, HW, form(block, outer)),
    )
    assert not torch.equal(first[0], second[0])
    assert not torch.equal(
        block.outer_attn(outer, HW, form(block, outer)),
        block.outer_attn(outer, HW, form(block, outer)),
    )


def test_nothing_is_changed_in_place():
    block, (inner, outer) = nested(drop_path=0.5, drop_rate=0.5, with_se=True), tokens(2)
    before = inner.clone(), outer.clone()
    block(inner, outer, HW, form(block, outer))
    assert torch.equal(inner, before[0])
    assert torch.equal(outer, before[1])


@torch.no_grad()
def test_a_hook_may_keep_what_it_gets():
    block, (inner, outer) = nested().eval(), tokens(2)
    kept = {}
    for name in ('outer_attn', 'outer_mlp', 'proj_norm2'):
        block.get_submodule(name).register_forward_hook(
            lambda module, args, output, name=name: kept.update({name: (output, output.clone())})
        )
    block(inner, outer, HW, form(block, outer))
    assert len(kept) == 3
    assert all(torch.equal(output, then) for output, then in kept.values())


@pytest.mark.parametrize(('name', 'cls'), [('BN', nn.BatchNorm2d), ('SyncBN', nn.SyncBatchNorm)])
def test_types_of_norms(name, cls):
    norm = build_norm(dict(type=name), 6)
    assert type(norm) is cls
    assert norm.num_features == 6
    assert norm.eps == 1e-5
    assert is_batch_norm(norm)


def test_group_norm():
    norm = build_norm(dict(type='GN', num_groups=2, requires_grad=False), 6)
    assert (type(norm), norm.num_groups, norm.num_channels) == (nn.GroupNorm, 2, 6)
    assert not any(parameter.requires_grad for parameter in norm.parameters())
    assert not is_batch_norm(norm)


@pytest.mark.parametrize('groups', [dict(), dict(num_groups=0), dict(num_groups=4)])
def test_groups_that_do_not_divide_the_channels(groups: dict):
    with pytest.raises(ValueError, match='num_groups is .*, expected a divisor of the 6'):
        build_norm(dict(type='GN', **groups), 6)


def test_other_options_reach_the_norm():
    norm = build_norm(dict(type='BN', eps=1e-3, momentum=0.01), 6)
    assert (norm.eps, norm.momentum) == (1e-3, 0.01)


@pytest.mark.parametrize('requires_grad', [True, False])
def test_norms_that_learn_or_not(requires_grad):
    norm = build_norm(dict(type='BN', requires_grad=requires_grad), 6)
    assert [p.requires_grad for p in norm.parameters()] == [requires_grad] * 2


@pytest.mark.parametrize('norm_cfg', [dict(type='IN'), dict(requires_grad=False)])
def test_an_unknown_type_of_norm(norm_cfg):
    with pytest.raises(ValueError, match='norm_cfg type .* is unknown: use one of BN, SyncBN, GN'):
        build_norm(norm_cfg, 6)


def test_norm_cfg_is_only_read():
    norm_cfg = dict(type='BN', requires_grad=False)
    build_norm(norm_cfg, 6)
    assert norm_cfg == dict(type='BN', requires_grad=False)


def test_branches_are_dropped_or_rescaled_as_a_whole():
    branch = torch.randn(20_000, 3, 2)
    tokens = torch.randn(20_000, 3, 2)
    dropped = DropPath(0.2)(tokens, branch) - tokens
    gone = (dropped == 0).all(dim=(1, 2))
    torch.testing.assert_close(dropped[~gone], branch[~gone] / 0.8, atol=1e-5, rtol=1e-5)
    # Five standard deviations of 20000 draws are 0.014.
    assert gone.float().mean() == pytest.approx(0.2, abs=0.014)


def test_every_call_draws_again():
    drop, branch = DropPath(0.5), torch.ones(100, 1)
    assert not torch.equal(drop(branch, branch), drop(branch, branch))


def test_nothing_happens_in_evaluation_or_at_rate_zero():
    tokens, branch = torch.randn(2, 8, 3)
    for drop in (DropPath(0.5).eval(), DropPath(0.0)):
        assert torch.equal(drop(tokens, branch), tokens + branch)


@pytest.mark.parametrize('dtype', [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize('channels', [5, 8])
def test_a_narrow_norm_is_a_layer_norm(channels, dtype):
    """The form for a GPU equals torch's, and keeps the type of the tokens."""
    torch.manual_seed(0)
    norm, tokens = NarrowNorm(channels), (3 * torch.randn(4, 16, channels) + 2).to(dtype)
    torch.nn.init.normal_(norm.weight)
    torch.nn.init.normal_(norm.bias)
    found, expected = norm.elementwise(tokens), nn.LayerNorm.forward(norm.to(dtype), tokens)
    assert found.dtype == dtype
    torch.testing.assert_close(
        found, expected, rtol=0, atol=0.06 if dtype == torch.bfloat16 else 1e-5
    )
