"""Stems, which turn an image into inner tokens, outer tokens, or both."""

import torch
from torch import Tensor, nn

from ptnt_mm.models.layers.norm import build_norm
from ptnt_mm.models.layers.shapes import (
    PATCH,
    PLAIN_PATCH,
    Grid,
    crop,
    map_to_tokens,
    map_to_words,
    reduced,
    tokens_to_map,
)


class Stem(nn.Module):
    """Cut an image into outer tokens of 8 x 8 pixels and their 4 x 4 inner tokens.

    Two stacks of 3 x 3 convolutions over a shared first one (arXiv 2201.00978, "Convolutional
    Stem").

    Args:
        inner_dim: Channels of an inner token.
        outer_dim: Channels of an outer token.
        norm_cfg: Normalisation after every convolution, see :func:`build_norm`.
    """

    def __init__(self, inner_dim: int, outer_dim: int, norm_cfg: dict):
        super().__init__()
        self.common_conv = nn.Sequential(*_conv_norm_relu(3, inner_dim * 2, 2, norm_cfg))
        self.inner_convs = nn.Sequential(*_conv_norm_relu(inner_dim * 2, inner_dim, 1, norm_cfg))
        self.outer_convs = nn.Sequential(
            *_conv_norm_relu(inner_dim * 2, inner_dim * 4, 2, norm_cfg),
            *_conv_norm_relu(inner_dim * 4, inner_dim * 8, 2, norm_cfg),
            *_conv_norm_relu(inner_dim * 8, outer_dim, 1, norm_cfg),
        )

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Grid]:
        """(B, 3, H, W) -> inner (B*N, 16, c), outer (B, N, C), hw (H/8, W/8).

        ``H`` and ``W``, in pixels, are multiples of 8.
        """
        h, w = hw = reduced(image.shape[2:], PATCH)
        image = image.contiguous(memory_format=torch.channels_last)
        common = crop(self.common_conv(image), (4 * h, 4 * w))
        inner = crop(self.inner_convs(common), (4 * h, 4 * w))
        outer = crop(self.outer_convs(common), hw)
        return map_to_words(inner), map_to_tokens(outer), hw


class WordStem(nn.Module):
    """The stem of TNT: the words of each patch, by a convolution within the patch.

    Args:
        dim: Channels of an inner token.
        word_side: Inner tokens along one side of a patch.
    """

    def __init__(self, dim: int, word_side: int):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, 7, stride=PLAIN_PATCH // word_side, padding=3)

    def forward(self, image: Tensor) -> tuple[Tensor, Grid]:
        """(B, 3, H, W) -> inner (B*N, m, c), hw (H/16, W/16); sides are multiples of 16."""
        patches = tokens_to_map(map_to_words(image, PLAIN_PATCH), (PLAIN_PATCH, PLAIN_PATCH))
        return map_to_tokens(self.proj(patches)), reduced(image.shape[2:], PLAIN_PATCH)


class LegacyWordStem(WordStem):
    """The stem of :class:`LegacyTNT`: its convolution sees the pixels beyond a patch's border."""

    def forward(self, image: Tensor) -> tuple[Tensor, Grid]:
        """(B, 3, H, W) -> inner (B*N, m, c), hw (H/16, W/16); sides are multiples of 16."""
        words = map_to_words(self.proj(image), PLAIN_PATCH // self.proj.stride[0])
        return words, reduced(image.shape[2:], PLAIN_PATCH)


class PatchStem(nn.Module):
    """The stem of a Vision Transformer: a linear map of each patch (arXiv 2010.11929).

    Args:
        dim: Channels of a token.
    """

    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, PLAIN_PATCH, stride=PLAIN_PATCH)

    def forward(self, image: Tensor) -> tuple[Tensor, Grid]:
        """(B, 3, H, W) -> outer (B, N, C), hw (H/16, W/16); sides are multiples of 16."""
        return map_to_tokens(self.proj(image)), reduced(image.shape[2:], PLAIN_PATCH)


def _conv_norm_relu(
    in_channels: int, out_channels: int, stride: int, norm_cfg: dict
) -> tuple[nn.Module, ...]:
    return (
        nn.Conv2d(in_channels, out_channels, 3, stride, padding=1),
        build_norm(norm_cfg, out_channels),
        nn.ReLU(inplace=True),
    )
