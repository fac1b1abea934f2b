"""The stem, the merges and the stages of PyramidTNT."""

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.blocks import NestedBlock, OuterBlock
from ptnt_mm.models.position_tables import (
    FlatRelativePosition,
    GridRelativePosition,
    RelativePosition,
)
from ptnt_mm.models.pyramid_tnt import PyramidTNT, SentenceAggregation, Stem, WordAggregation
from ptnt_mm.models.stages import Stage
from ptnt_mm.models.tokens import map_to_words, tokens_to_map, words_to_map

from . import golden


def fresh(
    eager: bool = False,
    position: type = GridRelativePosition,
    with_cp: bool = False,
    drop: float = 0.0,
    pretrain_hw: tuple[int, int] = (8, 8),
) -> Stage:
    """Three blocks, of which the first has an inner transformer."""
    options = dict(eager=eager, sr_ratio=2, drop_rate=drop, attn_drop_rate=drop)
    nested = partial(NestedBlock, 4, 16, 2, 4, **options)
    outer = partial(OuterBlock, 16, 4, **options)
    return Stage(
        [nested, outer, outer],
        drop_paths=[0.0, drop, drop],
        pretrain_hw=pretrain_hw,
        relative_position=position,
        pegs={},
        with_cp=with_cp,
    )


def build(*args, **options) -> Stage:
    return golden.filled(fresh(*args, **options))


def tokens(hw: tuple[int, int]) -> tuple[Tensor, Tensor]:
    n = hw[0] * hw[1]
    return torch.randn(2 * n, 16, 4), torch.randn(2, n, 16)


def saved_bytes(stage: Stage, inner: Tensor, outer: Tensor, hw: tuple[int, int]) -> int:
    """Bytes that the forward pass saves for the backward pass, each storage counted once.

    The tokens between recomputed blocks are kept too, but not saved by an operation.
    """
    storages = {}

    def pack(tensor: Tensor) -> Tensor:
        storages[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        stage(inner, outer, hw)
    return sum(storage.nbytes() for storage in storages.values())


def test_the_first_blocks_are_nested(micro_arch: dict):
    arch = dict(micro_arch, depths=(3, 2, 1, 1), inner_depths=(1, 2, 0, 0))
    found = [[type(block) for block in stage.blocks] for stage in PyramidTNT(arch).stages]
    assert found == [[NestedBlock, OuterBlock, OuterBlock], [NestedBlock] * 2, *[[OuterBlock]] * 2]


@pytest.mark.parametrize('eager', [True, False])
def test_without_a_position_there_is_no_table(eager):
    stage = build(eager, position=RelativePosition)
    assert not [name for name, _ in stage.named_parameters() if 'pos' in name]
    inner, outer = tokens((3, 5))
    assert stage(inner, outer, (3, 5))[1].shape == outer.shape


@pytest.mark.parametrize('hw', [(8, 8), (3, 5), (4, 16)])
def test_the_position_matters_and_each_class_in_its_way(hw):
    inner, outer = tokens(hw)
    grid, flat, none = (
        build(position=position)(inner, outer, hw)[1]
        for position in (GridRelativePosition, FlatRelativePosition, RelativePosition)
    )
    assert not torch.allclose(grid, none, atol=1e-3)
    assert torch.allclose(grid, flat, atol=1e-5) == (hw == (8, 8))


@pytest.mark.parametrize('eager', [True, False])
def test_recomputing_keeps_less(eager):
    sample = tokens((8, 8))
    plain = saved_bytes(build(eager), *sample, (8, 8))
    assert saved_bytes(build(eager, with_cp=True), *sample, (8, 8)) < 0.1 * plain


@pytest.fixture
def stem() -> Stem:
    return golden.filled(Stem(5, 12, dict(type='BN'))).eval()


def changed_places(difference: torch.Tensor) -> tuple[tuple[int, int], tuple[int, int]]:
    """First and last row, first and last column, where a map (1, C, h, w) is not zero."""
    places = difference[0].any(dim=0).nonzero()
    first, last = places.amin(dim=0).tolist(), places.amax(dim=0).tolist()
    return tuple(zip(first, last, strict=True))


def test_tokens_of_an_image_that_is_no_square(stem):
    inner, outer, hw = stem(golden.image(2, 24, 40))
    assert hw == (3, 5)
    assert inner.shape == (2 * 15, 16, 5)
    assert outer.shape == (2, 15, 12)


def test_both_streams_lie_where_the_image_does(stem):
    """A changed cell of 8 x 8 pixels affects only tokens with it in their receptive field.

    A word at row u sees pixel rows 2u - 3 to 2u + 3, a sentence at row y rows 8y - 15 to 8y + 15.
    """
    image = golden.image(1, 64, 96)
    changed = image.clone()
    changed[:, :, 40:48, 72:80] += 1.0
    (inner, outer, hw), (new_inner, new_outer, _) = stem(image), stem(changed)
    assert changed_places(words_to_map(new_inner - inner, hw)) == ((19, 25), (35, 41))
    assert changed_places(tokens_to_map(new_outer - outer, hw)) == ((4, 7), (8, 11))


def test_every_convolution_has_a_bias_a_norm_and_a_relu(stem):
    for stack in stem.children():
        for conv, norm, relu in zip(*[iter(stack)] * 3, strict=True):
            assert conv.bias is not None
            assert conv.kernel_size == (3, 3)
            assert isinstance(norm, nn.BatchNorm2d)
            assert norm.eps == 1e-5
            assert isinstance(relu, nn.ReLU)
    inner, outer, _ = stem(golden.image(1, 16, 16))
    assert torch.cat([inner.flatten(), outer.flatten()]).min() == 0


GRIDS = [(25, 42), (13, 21), (7, 7), (6, 9)]


def inputs(hw: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Words (2*h*w, 16, 8) and sentences (2, h*w, 24) of the golden file."""
    h, w = hw
    rng = np.random.Generator(np.random.PCG64(h * 100 + w))
    shapes = (2 * h * w, 16, 8), (2, h * w, 24)
    return tuple(
        torch.from_numpy(rng.standard_normal(shape, np.float64)).float() for shape in shapes
    )


def expected(kind: str, hw: tuple[int, int]) -> torch.Tensor:
    return golden.numbers('aggregation_odd_seed0')[f'{kind}_{hw[0]}x{hw[1]}']


@pytest.mark.parametrize('hw', GRIDS)
def test_parity_of_words(hw):
    merge = golden.filled(WordAggregation(8, 16), prefix='word_merge.')
    found = merge(inputs(hw)[0], hw)
    torch.testing.assert_close(found, expected('word', hw), rtol=0, atol=1e-4)


@pytest.mark.parametrize('hw', GRIDS)
def test_parity_of_sentences(hw):
    merge = golden.filled(SentenceAggregation(24, 48), prefix='sentence_merge.')
    found, merged_hw = merge(inputs(hw)[1], hw)
    torch.testing.assert_close(found, expected('sentence', hw), rtol=0, atol=1e-4)
    assert merged_hw == (-(-hw[0] // 2), -(-hw[1] // 2))


def test_the_words_of_a_merged_sentence_know_its_own_four_only():
    """A convolution over each 8 x 8 map, not over the whole image's words."""
    merge = golden.filled(WordAggregation(8, 16))
    words = inputs((6, 9))[0]
    quads = F.pad(words_to_map(merge.norm(words), (6, 9)), (0, 4)).unfold(2, 8, 8).unfold(3, 8, 8)
    alone = merge.conv(quads.permute(0, 2, 3, 1, 4, 5).flatten(0, 2))
    torch.testing.assert_close(merge(words, (6, 9)), map_to_words(alone))


def test_a_missing_neighbour_is_zero_after_the_norm():
    merge = golden.filled(SentenceAggregation(24, 48))
    sentences = inputs((7, 7))[1]
    padded = F.pad(tokens_to_map(merge.norm(sentences), (7, 7)), (1, 1, 1, 1))
    alone = F.conv2d(padded, merge.conv[0].weight, merge.conv[0].bias, stride=2)
    torch.testing.assert_close(tokens_to_map(*merge(sentences, (7, 7))), alone)
