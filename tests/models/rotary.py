"""A position encoding outside the package that adds nothing to logits: it turns queries and keys.

RoFormer (arXiv 2104.09864), along both axes: half of a head's channels turn with the row, half
with the column. Keys that average sentences stand at the centres of their windows.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.position_tables import RelativePosition
from ptnt_mm.models.tokens import Grid


class Rotated(NamedTuple):
    """A form of attention: the grids of queries and keys, and the side of a key in sentences."""

    hw: Grid
    key_hw: Grid

    def attend(self, q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
        """Q (B, heads, N, d), k and v (B, heads, M, d) -> (B, heads, N, d)."""
        step = [-(-side // keys) for side, keys in zip(self.hw, self.key_hw, strict=True)]
        k = turned(k, self.key_hw, step)
        return F.scaled_dot_product_attention(turned(q, self.hw, (1, 1)), k, v, dropout_p=dropout)


class RotaryPosition(RelativePosition):
    def between(self, table: None, query_hw: Grid, key_hw: Grid) -> Rotated:
        """How to attend on grids of queries and keys."""
        return Rotated(query_hw, key_hw)


def turned(x: Tensor, hw: Grid, step: Grid) -> Tensor:
    """(B, heads, h*w, d) -> the same, each pair of channels turned by its place."""
    quarter = x.shape[-1] // 4
    rates = 10000 ** -(torch.arange(quarter, dtype=x.dtype, device=x.device) / max(quarter, 1))
    rows, columns = (
        ((torch.arange(n, dtype=x.dtype, device=x.device) + 0.5) * s)[:, None] * rates
        for n, s in zip(hw, step, strict=True)
    )
    angles = torch.cat(
        [rows[:, None].expand(*hw, -1), columns[None].expand(*hw, -1)], dim=2
    ).flatten(0, 1)
    a, b = x[..., : 2 * quarter], x[..., 2 * quarter : 4 * quarter]
    return torch.cat(
        [
            a * angles.cos() - b * angles.sin(),
            a * angles.sin() + b * angles.cos(),
            x[..., 4 * quarter :],
        ],
        dim=-1,
    )
