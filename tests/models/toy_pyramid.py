"""A pyramid of the family outside the package: words are mixed by a depthwise convolution."""

from torch import Tensor, nn

from ptnt_mm.models import PyramidTNT
from ptnt_mm.models.blocks import NestedBlock
from ptnt_mm.models.tokens import WORD_SIDE, map_to_tokens, tokens_to_map


class WordConvolution(nn.Module):
    """A 3 x 3 depthwise convolution over the words of each sentence, in place of attention."""

    def __init__(self, dim: int, heads: int, attn_drop: float, proj_drop: float, eager: bool):
        super().__init__()
        self.conv = nn.Conv2d(dim, dim, 3, padding=1, groups=dim)
        self.drop = nn.Dropout(proj_drop)

    def forward(self, words: Tensor) -> Tensor:
        """(B*N, m, c) -> (B*N, m, c)."""
        return self.drop(map_to_tokens(self.conv(tokens_to_map(words, (WORD_SIDE, WORD_SIDE)))))


class ConvolvedBlock(NestedBlock):
    mixer = WordConvolution


class ToyPyramid(PyramidTNT):
    """Convolution in Transformer, in a pyramid."""

    archs = dict(
        small=dict(
            alias='s',
            depths=(2, 2, 1, 1),
            inner_depths=(1, 1, 1, 1),
            outer_dims=(16, 32, 64, 64),
            inner_dims=(4, 4, 8, 8),
            outer_heads=(1, 2, 4, 4),
            inner_heads=(1, 1, 2, 2),
            pretrain_img_size=64,
        )
    )
    arch_prefix = 'toy_pyramid_'
    nested_block = ConvolvedBlock
