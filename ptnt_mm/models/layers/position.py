"""Position tables: learned for the pretraining grid, resized to the grid of the image at hand.

A relative position is a table ``R`` of shape (1, heads, N_pre, M_pre): one bias for each pair of a
query and a (pooled) key of the pretraining grid. Resizing is linear, so the table of another grid
is ``Q R K^T`` with two matrices that depend on the grids alone. The classes below give either the
product, for an attention that adds it to its logits, or the two factors ``Q R`` and ``K``, for an
attention that folds them into queries and keys. They hold no weights: the table is the stage's.
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

    keys: Tensor
    """K, (M, M_pre)."""


class RelativePosition(Protocol):
    """How a table becomes the bias between N queries and M keys; grids (h, w) in tokens."""

    def new_table(self, heads: int) -> Tensor | None:
        """Draw a table (1, heads, N_pre, M_pre), or None for attention without one."""

    def bias(self, table: Tensor | None, query_hw: Grid, key_hw: Grid) -> Tensor | None:
        """(1, heads, N_pre, M_pre) -> (1, heads, N, M)."""

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

    def bias(self, table: Tensor, query_hw: Grid, key_hw: Grid) -> Tensor:
        """(1, heads, N_pre, M_pre) -> (1, heads, N, M)."""
        return resize_relative(table, self.query_hw, query_hw, self.key_hw, key_hw)

    def factors(self, table: Tensor, query_hw: Grid, key_hw: Grid) -> Factors:
        """(1, heads, N_pre, M_pre) -> Q R (1, heads, N, M_pre) and K (M, M_pre)."""
        queries = _resize_rows(table, self.query_hw, query_hw)
        return Factors(queries, _interpolation_matrix(self.key_hw, key_hw, table))


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

    def bias(self, table: Tensor, query_hw: Grid, key_hw: Grid) -> Tensor:
        """(1, heads, N_pre, M_pre) -> (1, heads, N, M)."""
        return _bicubic(table, (_area(query_hw), _area(key_hw)))

    def factors(self, table: Tensor, query_hw: Grid, key_hw: Grid) -> Factors:
        """(1, heads, N_pre, M_pre) -> Q R (1, heads, N, M_pre) and K (M, M_pre)."""
        queries = _bicubic(table, (_area(query_hw), self.keys))
        keys = _interpolation_matrix((self.keys, 1), (_area(key_hw), 1), table)
        return Factors(queries, keys)


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

    def bias(self, table: None, query_hw: Grid, key_hw: Grid) -> None:
        """No bias."""

    def factors(self, table: None, query_hw: Grid, key_hw: Grid) -> None:
        """No factors."""


RELATIVE_POSITIONS: dict[str, type[RelativePosition]] = {
    'grid': GridRelativePosition,
    'flat': FlatRelativePosition,
    'none': NoRelativePosition,
}


def resize_grid(table: Tensor, from_hw: Grid, to_hw: Grid) -> Tensor:
    """Resize a table of grid places, differentiably: (1, h*w, C) -> (1, h'*w', C).

    Bicubic without antialiasing, corners not aligned; the identity where the grids are equal.
    """
    if from_hw == to_hw:
        return table
    return _resize_columns(table.transpose(1, 2), from_hw, to_hw).transpose(1, 2)


def resize_relative(
    table: Tensor, from_query_hw: Grid, to_query_hw: Grid, from_key_hw: Grid, to_key_hw: Grid
) -> Tensor:
    """Resize a relative table over both grids: (1, heads, N_pre, M_pre) -> (1, heads, N, M)."""
    rows = _resize_rows(table, from_query_hw, to_query_hw)
    return _resize_columns(rows, from_key_hw, to_key_hw)


def _resize_rows(table: Tensor, from_hw: Grid, to_hw: Grid) -> Tensor:
    """(..., h*w, M) -> (..., h'*w', M)."""
    if from_hw == to_hw:
        return table
    return _resize_columns(table.transpose(-1, -2), from_hw, to_hw).transpose(-1, -2)


def _resize_columns(table: Tensor, from_hw: Grid, to_hw: Grid) -> Tensor:
    """(..., M, h*w) -> (..., M, h'*w')."""
    if from_hw == to_hw:
        return table
    resized = _bicubic(table.reshape(1, -1, *from_hw), to_hw)
    return resized.reshape(*table.shape[:-1], _area(to_hw))


def _interpolation_matrix(from_hw: Grid, to_hw: Grid, like: Tensor) -> Tensor:
    """The matrix K of shape (h'*w', h*w) with ``resized = K @ places``."""
    identity = torch.eye(_area(from_hw), dtype=like.dtype, device=like.device)
    return _resize_rows(identity, from_hw, to_hw)


def _bicubic(feature: Tensor, to_hw: Grid) -> Tensor:
    """(B, C, h, w) -> (B, C, h', w').

    The same numbers as ``F.interpolate``, by one matrix for each axis: faster in both directions,
    and its backward pass has a deterministic form on every device. Autocast would round the tables.
    """
    rows, columns = (_weights(n, m, feature) for n, m in zip(feature.shape[2:], to_hw, strict=True))
    with _without_autocast(feature):
        return rows @ feature @ columns.mT


def _without_autocast(like: Tensor) -> AbstractContextManager:
    """Full precision for what follows; the meta device has no autocast to switch off."""
    return nullcontext() if like.is_meta else torch.autocast(like.device.type, enabled=False)


def _weights(places: int, to_places: int, like: Tensor) -> Tensor:
    """What each of ``to_places`` places takes from each of ``places``: (to_places, places)."""
    identity = torch.eye(places, dtype=like.dtype, device=like.device)[None, None]
    size = (to_places, places)
    return F.interpolate(identity, size=size, mode='bicubic', align_corners=False)[0, 0]


def _area(hw: Grid) -> int:
    return hw[0] * hw[1]
