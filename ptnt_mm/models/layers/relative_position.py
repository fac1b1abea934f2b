"""Relative positions: a bias for each pair of a query and a (pooled) key.

The bias is a table ``R`` of shape (1, heads, N_pre, M_pre), learned for the pretraining grid.
Resizing is linear, so the table of a different grid is ``Q R K^T`` with two matrices that depend
only on the grids. The classes below return its factors: an attention may multiply them and add the
product to its logits, or fold them into queries and keys. They hold no weights: the stage owns the
table.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ptnt_mm.models.layers.shapes import Grid, area
from ptnt_mm.models.layers.tables import axis_weights, resize_grid, without_autocast


class Factors(NamedTuple):
    """A resized table as the product of its factors."""

    queries: Tensor
    """Q R, (1, heads, N, M_pre)."""

    rows: Tensor
    """Weights of the table's rows for each row of keys, (h, h_pre); each row sums to 1."""

    columns: Tensor
    """Weights of the table's columns for each column of keys, (w, w_pre); each row sums to 1."""

    # Methods, because torch.compile of torch 2.6 cannot read a named tuple's properties.
    def keys(self) -> Tensor:
        """K, (M, M_pre): rows and columns as one matrix."""
        pairs = self.rows[:, None, :, None] * self.columns[None, :, None, :]
        return pairs.flatten(2).flatten(0, 1)

    def bias(self) -> Tensor:
        """Q R K^T, (1, heads, N, M), one axis after the other."""
        with without_autocast(self.queries):
            return (self.rows @ self.grids() @ self.columns.mT).flatten(-2)

    def grids(self) -> Tensor:
        """The queries' factor as maps over the keys, (1, heads, N, h_pre, w_pre)."""
        return self.queries.unflatten(-1, (self.rows.shape[1], self.columns.shape[1]))


class RelativePosition:
    """Base class: attention without a position table, as the detector CFDT was released.

    A subclass turns a table into the bias between N queries and M keys.

    Args:
        query_hw: Grid (h, w) of the queries that the table was learned for, in tokens.
        key_hw: Grid of the keys that the table was learned for.
    """

    def __init__(self, query_hw: Grid, key_hw: Grid):
        self.query_hw = query_hw
        self.key_hw = key_hw

    def new_table(self, heads: int) -> nn.Parameter | None:
        """Draw a table (1, heads, N_pre, M_pre), or None for attention without one."""

    def factors(self, table: Tensor | None, query_hw: Grid, key_hw: Grid) -> Factors | None:
        """(1, heads, N_pre, M_pre) -> Q R, and K's rows (h, h_pre) and columns; or None."""

    @classmethod
    def resize(
        cls,
        table: Tensor,
        from_query_hw: Grid,
        to_query_hw: Grid,
        from_key_hw: Grid,
        to_key_hw: Grid,
    ) -> Tensor:
        """Convert a table to other pretraining grids: (1, heads, N, M) -> (1, heads, N', M')."""
        return cls(from_query_hw, from_key_hw).factors(table, to_query_hw, to_key_hw).bias()


class GridRelativePosition(RelativePosition):
    """Bicubic over the grid of the queries and over the grid of the keys (ours).

    The table's rows and columns are treated as places on a grid, so neighbours stay neighbours. On
    the pretraining grid it is the identity.
    """

    def new_table(self, heads: int) -> nn.Parameter:
        """Draw a table (1, heads, N_pre, M_pre) from N(0, 1), as published."""
        return nn.Parameter(torch.randn(1, heads, area(self.query_hw), area(self.key_hw)))

    def factors(self, table: Tensor, query_hw: Grid, key_hw: Grid) -> Factors:
        """(1, heads, N_pre, M_pre) -> Q R, and K's rows (h, h_pre) and columns."""
        queries = resize_grid(table, self.query_hw, query_hw)
        return Factors(queries, *axis_weights(self.key_hw, key_hw, table))


class FlatRelativePosition(GridRelativePosition):
    """Bicubic over the (N_pre, M_pre) matrix as if it were an image: each grid is one column.

    The same authors' other code does this (the detector CFDT and Vision GNN). It mixes the end of
    one grid row with the start of the next, so use it only for weights that were trained with it.
    """

    def __init__(self, query_hw: Grid, key_hw: Grid):
        super().__init__((area(query_hw), 1), (area(key_hw), 1))

    def factors(self, table: Tensor, query_hw: Grid, key_hw: Grid) -> Factors:
        """(1, heads, N_pre, M_pre) -> Q R, and K's rows (M, M_pre) and columns (1, 1)."""
        return super().factors(table, (area(query_hw), 1), (area(key_hw), 1))


RELATIVE_POSITIONS: dict[str, type[RelativePosition]] = {
    'grid': GridRelativePosition,
    'flat': FlatRelativePosition,
    'none': RelativePosition,
}
