"""Merging between stages: a quarter of the sentences, the same number of words in each."""

from torch import Tensor, nn

from ptnt_mm.models.layers.shapes import (
    WORDS,
    Grid,
    area,
    crop,
    map_to_tokens,
    pad,
    reduced,
    tokens_to_map,
    words_to_quads,
)


class SentenceAggregation(nn.Module):
    """Halve the grid of the outer tokens, rounding up (arXiv 2201.00978, "Pyramid Architecture").

    Args:
        in_dim: Channels of an outer token before.
        out_dim: Channels of an outer token after.
    """

    def __init__(self, in_dim: int, out_dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(in_dim)
        self.conv = nn.Sequential(nn.Conv2d(in_dim, out_dim, 3, stride=2, padding=1))

    def forward(self, outer: Tensor, hw: Grid) -> tuple[Tensor, Grid]:
        """(B, h*w, C) -> (B, N', C') and the new grid (ceil(h/2), ceil(w/2)), in tokens."""
        merged_hw = reduced(hw, 2)
        merged = self.conv(tokens_to_map(self.norm(outer), hw))
        return map_to_tokens(crop(merged, merged_hw)), merged_hw


class WordAggregation(nn.Module):
    """Turn the 8 x 8 words of 2 x 2 sentences into the 4 x 4 words of one merged sentence.

    Args:
        in_dim: Channels of an inner token before.
        out_dim: Channels of an inner token after.
    """

    def __init__(self, in_dim: int, out_dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(in_dim)
        self.conv = nn.Sequential(nn.Conv2d(in_dim, out_dim, 3, stride=2, padding=1))

    def forward(self, inner: Tensor, hw: Grid) -> Tensor:
        """(B*h*w, 16, c) -> (B*ceil(h/2)*ceil(w/2), 16, c'); ``hw`` in outer tokens.

        A grid with an odd side is padded at the bottom and right with zero words.
        """
        inner, hw = _pad_to_even(self.norm(inner), hw)
        return map_to_tokens(self.conv(words_to_quads(inner, hw)))


def _pad_to_even(inner: Tensor, hw: Grid) -> tuple[Tensor, Grid]:
    """Add a row and a column of zero sentences where the grid's side is odd."""
    even = tuple(2 * side for side in reduced(hw, 2))
    sentences = inner.reshape(-1, area(hw), WORDS * inner.shape[2])
    padded = pad(tokens_to_map(sentences, hw), even)
    return map_to_tokens(padded).reshape(-1, WORDS, inner.shape[2]), even
