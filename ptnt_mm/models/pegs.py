"""Position encoding generators (PEG): convolutions that tell tokens where they are, on any grid."""

import torch
from torch import Tensor, nn

from ptnt_mm.models.tokens import Grid, map_to_tokens, tokens_to_map


def _depthwise(dim: int, kernel_size: int, padding_mode: str) -> nn.Module:
    padding = kernel_size // 2
    return nn.Conv2d(dim, dim, kernel_size, padding=padding, groups=dim, padding_mode=padding_mode)


def _separable(dim: int, kernel_size: int, padding_mode: str) -> nn.Module:
    return nn.Sequential(_depthwise(dim, kernel_size, padding_mode), nn.Conv2d(dim, dim, 1))


def _four_separable(dim: int, kernel_size: int, padding_mode: str) -> nn.Module:
    return nn.Sequential(*(_separable(dim, kernel_size, padding_mode) for _ in range(4)))


def _full(dim: int, kernel_size: int, padding_mode: str) -> nn.Module:
    return nn.Conv2d(dim, dim, kernel_size, padding=kernel_size // 2, padding_mode=padding_mode)


def _fully_connected(dim: int, kernel_size: int, padding_mode: str) -> nn.Module:
    """A layer for each token by itself, which cannot know its place."""
    if (kernel_size, padding_mode) != (3, 'zeros'):
        raise ValueError(
            f'kernel_size is {kernel_size!r} and padding_mode {padding_mode!r}: a PEG that is '
            'fully_connected sees one token, and has neither; omit them'
        )
    return nn.Conv2d(dim, dim, 1)


PEG_KINDS = {
    'depthwise': _depthwise,
    'separable': _separable,
    'four_separable': _four_separable,
    'full': _full,
    'fully_connected': _fully_connected,
}
"""The generators that CPVT's paper compares (arXiv 2102.10882, section 5): functions from the
channels, the kernel and the padding to the layers."""


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
        kind: One of ``PEG_KINDS``; 'depthwise' as published.
        frozen: Whether the layers keep their random initialisation.

    Raises:
        ValueError: in :meth:`forward`, for a grid with fewer tokens than the padding copies.
    """

    pretrained_may_lack = ('conv',)  # published weights of TNT and PyramidTNT have none

    def __init__(
        self,
        dim: int,
        kernel_size: int = 3,
        padding_mode: str = 'zeros',
        class_tokens: int = 0,
        kind: str = 'depthwise',
        frozen: bool = False,
    ):
        super().__init__()
        self.class_tokens = class_tokens
        self.padding_mode = padding_mode
        padding = kernel_size // 2
        self.least_side = dict(reflect=padding + 1, circular=padding).get(padding_mode, 1)
        self.conv = PEG_KINDS[kind](dim, kernel_size, padding_mode)
        self.conv.requires_grad_(not frozen)

    def forward(self, tokens: Tensor, hw: Grid) -> Tensor:
        """(B, n + h*w, C) -> (B, n + h*w, C), with n class tokens."""
        if self.least_side > 1 and min(hw) < self.least_side:
            raise ValueError(
                f'padding_mode of a PEG is {self.padding_mode!r}: it needs a grid of at least '
                f'{self.least_side}x{self.least_side} tokens for this kernel, but got '
                f"{hw[0]}x{hw[1]}: use larger images, 'zeros' or 'replicate'"
            )
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
