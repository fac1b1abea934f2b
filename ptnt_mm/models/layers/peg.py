"""Positional encoding generators: convolutions whose padding encodes the position."""

import torch
from torch import Tensor, nn

from ptnt_mm.models.layers.shapes import Grid, map_to_tokens, tokens_to_map


class PEG(nn.Module):
    """Positional encoding generator: tokens plus a depthwise convolution of their map.

    The zero padding around the map encodes the border, and so the position of each token (arXiv
    2102.10882, section 3.2). There is nothing to resize: it works on any grid.

    Args:
        dim: Channels of a token.
        kernel_size: Side of the convolution, an odd number of tokens.
        padding_mode: Padding around the map: 'zeros' as published, or another mode of torch, with
            less ('reflect', 'replicate') or no information ('circular') about the border.
        class_tokens: Leading tokens that are not on the map. They pass through unchanged.
    """

    pretrained_may_lack = ('conv',)  # published weights of TNT and PyramidTNT have none

    def __init__(
        self, dim: int, kernel_size: int = 3, padding_mode: str = 'zeros', class_tokens: int = 0
    ):
        super().__init__()
        self.class_tokens = class_tokens
        self.conv = nn.Conv2d(
            dim, dim, kernel_size, padding=kernel_size // 2, groups=dim, padding_mode=padding_mode
        )

    def forward(self, tokens: Tensor, hw: Grid) -> Tensor:
        """(B, n + h*w, C) -> (B, n + h*w, C), with n class tokens."""
        first, on_map = tokens[:, : self.class_tokens], tokens[:, self.class_tokens :]
        out = on_map + map_to_tokens(self.conv(tokens_to_map(on_map, hw)))
        return torch.cat([first, out], dim=1) if self.class_tokens else out


class MaskedPEG(nn.Module):
    """The PEG of DETR's encoders: BatchNorm and ReLU after the convolution, and padded places.

    Padded places keep their value (arXiv 2102.10882). The convolution sees zeros there, so that the
    border is that of the image and not of the padded batch (ours).

    Args:
        dim: Channels of a token.
    """

    def __init__(self, dim: int):
        super().__init__()
        self.conv = nn.Conv2d(dim, dim, 3, padding=1, groups=dim, bias=False)
        self.norm = nn.BatchNorm2d(dim)

    def forward(self, tokens: Tensor, hw: Grid, mask: Tensor | None) -> Tensor:
        """(B, h*w, C) -> (B, h*w, C).

        Args:
            tokens: Tokens of a map, row by row.
            hw: The map's grid.
            mask: True where a place is padded, (B, h*w), or None if none is.
        """
        seen = tokens if mask is None else tokens.masked_fill(mask[..., None], 0)
        out = tokens + map_to_tokens(self.norm(self.conv(tokens_to_map(seen, hw))).relu())
        return out if mask is None else torch.where(mask[..., None], tokens, out)
