"""Position tables: learned for the pretraining grid, resized to the grid of the image at hand.

A relative position is a table ``R`` of shape (1, heads, N_pre, M_pre): one bias for each pair of a
query and a (pooled) key of the pretraining grid. Resizing is linear, so the table of another grid
is ``Q R K^T`` with two matrices that depend on the grids alone. The classes below give its
factors: an attention may multiply them and add the product to its logits, or fold them into queries
and keys. They hold no weights: the table is the stage's.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.layers.shapes import Grid


class Factors(NamedTuple):
    """A resized table as the product of its factors."""

    queries: Tensor
    """Q R, (1, heads, N, M_pre)."""

    rows: Tensor
    """What each row of keys takes from each row of the table, (h, h_pre); adds up to 1."""

    columns: Tensor
    """What each column of keys takes from each column of the table, (w, w_pre); adds up to 1."""

    @property
    def keys(self) -> Tensor:
        """K, (M, M_pre): the two of them as one matrix."""
        pairs = self.rows[:, None, :, None] * self.columns[None, :, None, :]
        return pairs.flatten(2).flatten(0, 1)

    def bias(self) -> Tensor:
        """Q R K^T, (1, heads, N, M), one axis after the other."""
        with _without_autocast(self.queries):
            return (self.rows @ self.grids() @ self.columns.mT).flatten(-2)

    # A method, because torch.compile of torch 2.6 cannot read a named tuple's properties.
    def grids(self) -> Tensor:
        """The queries' factor as maps over the keys, (1, heads, N, h_pre, w_pre)."""
        return self.queries.unflatten(-1, (self.rows.shape[1], self.columns.shape[1]))


class RelativePosition(Protocol):
    """How a table becomes the bias between N queries and M keys; grids (h, w) in tokens."""

    def new_table(self, heads: int) -> Tensor | None:
        """Draw a table (1, heads, N_pre, M_pre), or None for attention without one."""

    def factors(self, table: Tensor | None, query_hw: Grid, key_hw: Grid) -> Factors | None:
        """(1, heads, N_pre, M_pre) -> Q R (1, heads, N, M_pre) and K (M, M_pre)."""


class GridRelativePosition:
    """Bicubic over the grid of the queries and over the grid of the keys (ours).

    The table's rows and columns are places on a grid, and neighbours stay neighbours. At the
    pretraining grid nothing is changed.

    Args:
        query_hw: Grid of the queries that the table was learned for.
        key_hw: Grid of the keys that the table was learned for.
    """

    def __init__(self, query_hw: Grid, key_hw: Grid):
        self.query_hw = query_hw
        self.key_hw = key_hw

    def new_table(self, heads: int) -> Tensor:
        """Draw a table (1, heads, N_pre, M_pre) from N(0, 1), as published."""
        return torch.randn(1, heads, _area(self.query_hw), _area(self.key_hw))

    def factors(self, table: Tensor, query_hw: Grid, key_hw: Grid) -> Factors:
        """(1, heads, N_pre, M_pre) -> Q R (1, heads, N, M_pre) and K (M, M_pre)."""
        queries = resize_grid(table, self.query_hw, query_hw)
        return Factors(queries, *_axes(self.key_hw, key_hw, table))


class FlatRelativePosition:
    """Bicubic over the (N_pre, M_pre) matrix as if it were a picture.

    What the same authors' other code does (the detector CFDT and Vision GNN). It mixes the end of
    one grid row with the start of the next, so use it only for weights that were trained with it.

    Args:
        query_hw: Grid of the queries that the table was learned for.
        key_hw: Grid of the keys that the table was learned for.
    """

    def __init__(self, query_hw: Grid, key_hw: Grid):
        self.queries = query_hw[0] * query_hw[1]
        self.keys = key_hw[0] * key_hw[1]

    def new_table(self, heads: int) -> Tensor:
        """Draw a table (1, heads, N_pre, M_pre) from N(0, 1), as published."""
        return torch.randn(1, heads, self.queries, self.keys)

    def factors(self, table: Tensor, query_hw: Grid, key_hw: Grid) -> Factors:
        """(1, heads, N_pre, M_pre) -> Q R (1, heads, N, M_pre) and K (M, M_pre)."""
        queries = resize_grid(table, (self.queries, 1), (_area(query_hw), 1))
        return Factors(queries, *_axes((self.keys, 1), (_area(key_hw), 1), table))


class NoRelativePosition:
    """Attention without a position table, as the detector CFDT was released.

    Args:
        query_hw: Not used.
        key_hw: Not used.
    """

    def __init__(self, query_hw: Grid, key_hw: Grid):
        pass

    def new_table(self, heads: int) -> None:
        """No table."""

    def factors(self, table: None, query_hw: Grid, key_hw: Grid) -> None:
        """No factors."""


RELATIVE_POSITIONS: dict[str, type[RelativePosition]] = {
    'grid': GridRelativePosition,
    'flat': FlatRelativePosition,
    'none': NoRelativePosition,
}


def resize_grid(table: Tensor, from_hw: Grid, to_hw: Grid) -> Tensor:
    """Resize a table of grid places, differentiably: (..., h*w, C) -> (..., h'*w', C).

    Bicubic without antialiasing, corners not aligned; the identity where the grids are equal. The
    same numbers as ``F.interpolate``, by one matrix for each axis: faster in both directions, and
    its backward pass has a deterministic form on every device. Autocast would round the tables.
    Compiled code multiplies by the identity, too: a branch would compile once more for that grid.
    """
    if not torch.compiler.is_compiling() and from_hw == to_hw:
        return table
    rows, columns = _axes(from_hw, to_hw, table)
    with _without_autocast(table):
        tall = rows @ table.unflatten(-2, from_hw).flatten(-2)  # (..., h', w*C)
        return (columns @ tall.unflatten(-1, (from_hw[1], -1))).flatten(-3, -2)


def resize_relative(
    table: Tensor, from_query_hw: Grid, to_query_hw: Grid, from_key_hw: Grid, to_key_hw: Grid
) -> Tensor:
    """Resize a relative table over both grids: (1, heads, N_pre, M_pre) -> (1, heads, N, M)."""
    position = GridRelativePosition(from_query_hw, from_key_hw)
    return position.factors(table, to_query_hw, to_key_hw).bias()


def _axes(from_hw: Grid, to_hw: Grid, like: Tensor) -> tuple[Tensor, Tensor]:
    """What places take from places, along each axis: (h', h) and (w', w)."""
    rows, columns = (_weights(n, m, like) for n, m in zip(from_hw, to_hw, strict=True))
    return rows, columns


def _weights(places: int, to_places: int, like: Tensor) -> Tensor:
    """What each of ``to_places`` places takes from each of ``places``: (to_places, places)."""
    identity = torch.eye(places, dtype=like.dtype, device=like.device)[None, None]
    size = (to_places, places)
    return F.interpolate(identity, size=size, mode='bicubic', align_corners=False)[0, 0]


def _without_autocast(like: Tensor) -> AbstractContextManager:
    """Full precision for what follows; the meta device has no autocast to switch off."""
    return nullcontext() if like.is_meta else torch.autocast(like.device.type, enabled=False)


def _area(hw: Grid) -> int:
    return hw[0] * hw[1]
