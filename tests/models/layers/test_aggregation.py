import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.layers.aggregation import SentenceAggregation, WordAggregation
from ptnt_mm.models.layers.shapes import map_to_words, tokens_to_map, words_to_map

from .. import golden

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
