"""Conversions between token sequences and maps, as named inverse pairs.

``B`` images, a grid of ``h * w`` outer tokens, each of which holds ``m`` inner tokens, all counted
row by row: 4 x 4 in PyramidTNT; 2 x 2, 4 x 4 or 8 x 8 in TNT. An inner sequence keeps its outer
tokens on the batch axis: ``(B*h*w, m, c)``.

Tensors, widths and parameters are called inner and outer; what they stand for, and the modules for
it, are called words and sentences, as in the paper. Names from its authors' code are kept, such as
``word_merges``.
"""

import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.kernels.memory import transforms_active

Grid = tuple[int, int]
"""Height and width of a grid, in tokens."""

PATCH = 8
"""Side of an outer token in PyramidTNT's first stage, in pixels."""

SINGLE_SCALE_PATCH = 16
"""Side of an outer token in TNT and CPVT, in pixels."""

WORD_SIDE = 4
"""Inner tokens along one side of an outer token, in PyramidTNT."""

WORDS = WORD_SIDE**2
"""Inner tokens of one outer token, in PyramidTNT."""


def area(hw: Grid) -> int:
    """Number of tokens of a grid."""
    return hw[0] * hw[1]


def reduced(hw: Grid, ratio: int) -> Grid:
    """The grid of windows of ratio x ratio tokens, including those that extend past the border.

    A map's size is the same number, but computed by the formulas of convolutions, which
    torch.compile cannot simplify for symbolic sizes; so grids are computed from grids, and maps are
    cropped.
    """
    # Not -(-h // ratio): in an ONNX graph, integer division rounds towards zero.
    return (hw[0] + ratio - 1) // ratio, (hw[1] + ratio - 1) // ratio


def crop(feature: Tensor, hw: Grid) -> Tensor:
    """(B, C, H, W) -> (B, C, h, w), cut at the bottom and right; unchanged if it fits.

    The gradient of a cut is contiguous, whatever the order of the map, and the operators before it
    would run in that order, several times slower.
    """
    if _adapts(feature.shape[2:], hw):
        return feature.narrow(2, 0, hw[0]).narrow(3, 0, hw[1])
    return feature


def pad(feature: Tensor, hw: Grid) -> Tensor:
    """(B, C, H, W) -> (B, C, h, w), with zeros at the bottom and right; unchanged if it fits."""
    height, width = feature.shape[2:]
    if _adapts((height, width), hw):
        return F.pad(feature, (0, hw[1] - width, 0, hw[0] - height))
    return feature


def _adapts(from_hw: Grid, to_hw: Grid) -> bool:
    """Whether to cut or pad from one grid to another.

    A graph for any size always does, if only by 0: a branch would be a graph for each remainder,
    and the size that is named is the simpler formula.
    """
    if torch.compiler.is_compiling() or any(isinstance(side, torch.SymInt) for side in to_hw):
        return True
    return tuple(from_hw) != tuple(to_hw)


def tokens_to_map(tokens: Tensor, hw: Grid) -> Tensor:
    """(B, h*w, C) -> (B, C, h, w), a view in channels-last order."""
    _check_grid(tokens.shape[1], hw)
    return tokens.unflatten(1, hw).permute(0, 3, 1, 2)


def tokens_to_contiguous_map(tokens: Tensor, hw: Grid) -> Tensor:
    """(B, h*w, C) -> (B, C, h, w), a contiguous copy; its gradient is in the tokens' order.

    Autograd alone would pass the map's order on to all blocks below, where adding gradients in two
    memory orders takes several times as long.
    """
    if torch.jit.is_tracing() or _is_transformed(tokens):  # they support no custom functions
        return _ContiguousMap.forward(tokens, hw)
    return _ContiguousMap.apply(tokens, hw)


def map_to_tokens(feature: Tensor) -> Tensor:
    """(B, C, h, w) -> (B, h*w, C), a view where the map is in channels-last order."""
    return feature.permute(0, 2, 3, 1).flatten(1, 2)


def words_to_map(inner: Tensor, hw: Grid, side: int = WORD_SIDE) -> Tensor:
    """(B*h*w, side*side, c) -> (B, c, side*h, side*w): all inner tokens of an image on one grid."""
    h, w = hw
    channels = inner.shape[2]
    batch = _batch_size(inner, hw, side)
    grid = inner.reshape(batch, h, w, side, side, channels)
    return grid.permute(0, 5, 1, 3, 2, 4).reshape(batch, channels, h * side, w * side)


def map_to_words(feature: Tensor, side: int = WORD_SIDE) -> Tensor:
    """(B, c, side*h, side*w) -> (B*h*w, side*side, c): cut into windows, one per outer token."""
    batch, channels, height, width = feature.shape
    h, w = height // side, width // side
    if (h * side, w * side) != (height, width):
        raise ValueError(f'a map of {height}x{width} does not divide into {side}x{side} windows')
    grid = feature.permute(0, 2, 3, 1).reshape(batch, h, side, w, side, channels)
    return grid.transpose(2, 3).reshape(batch * h * w, side * side, channels)


def words_to_quads(inner: Tensor, hw: Grid) -> Tensor:
    """(B*h*w, 16, c) -> (B*ceil(h/2)*ceil(w/2), c, 8, 8): the words of 2 x 2 neighbours on one map.

    In channels-last order. A grid with an odd side gets zero words at the bottom and right.
    """
    h, w = reduced(hw, 2)
    grid = inner.unflatten(0, (_batch_size(inner, hw), *hw))
    if _adapts(hw, (2 * h, 2 * w)):
        grid = F.pad(grid, (0, 0, 0, 0, 0, 2 * w - hw[1], 0, 2 * h - hw[0]))
    batch, channels = grid.shape[0], grid.shape[-1]
    grid = grid.reshape(batch, h, 2, w, 2, WORD_SIDE, WORD_SIDE, channels)
    quads = grid.permute(0, 1, 3, 2, 5, 4, 6, 7)
    number = batch * h * w
    return quads.reshape(number, 2 * WORD_SIDE, 2 * WORD_SIDE, channels).permute(0, 3, 1, 2)


class _ContiguousMap(torch.autograd.Function):
    @staticmethod
    def forward(tokens: Tensor, hw: Grid) -> Tensor:
        return tokens_to_map(tokens, hw).contiguous()

    @staticmethod
    def setup_context(ctx, inputs: tuple[Tensor, Grid], output: Tensor) -> None:
        """Save nothing; compiled torch.func requires this method."""

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None]:
        return map_to_tokens(grad).contiguous(), None


def _is_transformed(tokens: Tensor) -> bool:
    """Whether torch.func or forward-mode differentiation is at work."""
    if torch.compiler.is_compiling():
        return False
    return transforms_active() or unpack_dual(tokens).tangent is not None


def _batch_size(inner: Tensor, hw: Grid, side: int = WORD_SIDE) -> int:
    """Number of images that the inner tokens belong to."""
    outer_tokens = area(hw)
    if inner.shape[0] % outer_tokens or inner.shape[1] != side**2:
        raise ValueError(
            f'inner tokens {tuple(inner.shape)} do not fit a grid of {hw[0]}x{hw[1]} outer tokens '
            f'with {side**2} inner tokens each'
        )
    return inner.shape[0] // outer_tokens


def _check_grid(length: int, hw: Grid) -> None:
    if length != area(hw):
        raise ValueError(f'{length} tokens do not fill a grid of {hw[0]}x{hw[1]}')
