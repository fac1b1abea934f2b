"""Learned tables of positions: how they are resized, and those between pairs of tokens.

A table belongs to the grid of the pretraining images, and is resized to the grid of each image.

A :class:`RelativePosition` gives the attention a bias for each pair of a query and a (pooled) key.
PyramidTNT's is a table ``R`` of shape (1, heads, N_pre, M_pre). Resizing is linear, so the table of
a different grid is ``Q R K^T`` with two matrices that depend only on the grids. Its classes return
these factors: an attention may multiply them and add the product to its logits, or fold them into
queries and keys. No class holds weights: the stage, or the backbone, owns the table.
"""

from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.kernels.memory import transforms_active
from ptnt_mm.models.tokens import Grid, area
from ptnt_mm.weights.networks import Table

if TYPE_CHECKING:
    from ptnt_mm.models.kernels.forms import Form


def resize_learned(table: Tensor, from_hw: Grid, to_hw: Grid) -> Tensor:
    """(1, n + h*w, C) -> (1, n + h'*w', C); the entries of n class tokens stay."""
    class_tokens = table.shape[1] - area(from_hw)
    if not class_tokens:
        return resize_grid(table, from_hw, to_hw)
    first, on_grid = table[:, :class_tokens], table[:, class_tokens:]
    return torch.cat([first, resize_grid(on_grid, from_hw, to_hw)], dim=1)


def resize_grid(table: Tensor, from_hw: Grid, to_hw: Grid) -> Tensor:
    """Resize a table of grid places, differentiably: (..., h*w, C) -> (..., h'*w', C).

    Bicubic without antialiasing, corners not aligned; the identity where the grids are equal. The
    result equals ``F.interpolate``, computed with one matrix per axis: faster in both directions,
    and with a deterministic backward pass on every device. Autocast would round the tables.
    Compiled code multiplies by the identity too: a branch would trigger a recompilation.
    """
    if not torch.compiler.is_compiling() and from_hw == to_hw:
        return table
    rows, columns = axis_weights(from_hw, to_hw, table)
    with without_autocast(table):
        tall = rows @ table.unflatten(-2, from_hw).flatten(-2)  # (..., h', w*C)
        return (columns @ tall.unflatten(-1, (from_hw[1], -1))).flatten(-3, -2)


def axis_weights(from_hw: Grid, to_hw: Grid, like: Tensor) -> tuple[Tensor, Tensor]:
    """Interpolation weights along each axis: (h', h) and (w', w)."""
    rows, columns = (_weights(n, m, like) for n, m in zip(from_hw, to_hw, strict=True))
    return rows, columns


_KEPT: dict[tuple, Tensor] = {}
_KEPT_LOCK = Lock()
MOST_KEPT = 256
"""Interpolation weights that are kept; each is a small matrix for one axis."""


def _weights(places: int, to_places: int, like: Tensor) -> Tensor:
    """Interpolation weights from ``places`` to ``to_places`` places: (to_places, places).

    They depend on the sizes alone. So they are computed once, which saves a GPU 36 small operators
    per forward pass. A graph computes them itself, and so owns their memory; so does code whose
    tensors are stand-ins (FakeTensorMode, torch.func).
    """
    if _is_recorded(like):
        return _compute_weights(places, to_places, like)
    key = places, to_places, like.dtype, like.device
    weights = _KEPT.get(key)
    if weights is None:
        with torch.inference_mode(False):
            weights = _compute_weights(places, to_places, like)
        with _KEPT_LOCK:
            while len(_KEPT) >= MOST_KEPT:
                del _KEPT[next(iter(_KEPT))]
            _KEPT[key] = weights
    return weights


def _compute_weights(places: int, to_places: int, like: Tensor) -> Tensor:
    identity = torch.eye(places, dtype=like.dtype, device=like.device)[None, None]
    size = (to_places, places)
    return F.interpolate(identity, size=size, mode='bicubic', align_corners=False)[0, 0]


def _is_recorded(like: Tensor) -> bool:
    """Whether tensors are stand-ins, or a graph is being made."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return True
    # Modes that only look at operators, such as counters, leave tensors as they are.
    keys = torch._C._TorchDispatchModeKey
    if any(map(torch._C._get_dispatch_mode, (keys.FAKE, keys.PROXY))) or transforms_active():
        return True
    return like.is_cuda and torch.cuda.is_current_stream_capturing()


def without_autocast(like: Tensor) -> AbstractContextManager:
    """Switch autocast off in this context; the meta device has none."""
    return nullcontext() if like.is_meta else torch.autocast(like.device.type, enabled=False)


def resize_axes(table: Tensor, from_hw: Grid, to_hw: Grid) -> Tensor:
    """Resize a table of rows, then of columns: (1, h + w, C) -> (1, h' + w', C)."""
    per_axis = zip(table.split(from_hw, dim=1), from_hw, to_hw, strict=True)
    return torch.cat([resize_grid(part, (n, 1), (m, 1)) for part, n, m in per_axis], dim=1)


def half(places: int) -> int | None:
    """The side of a square grid whose rows and columns are that many places; None if odd."""
    return None if places % 2 else places // 2


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

    def of_queries(self, rows: Tensor) -> 'Factors':
        """The factors for the queries at some indices."""
        return self._replace(queries=self.queries[:, :, rows])

    def grids(self) -> Tensor:
        """The queries' factor as maps over the keys, (1, heads, N, h_pre, w_pre)."""
        return self.queries.unflatten(-1, (self.rows.shape[1], self.columns.shape[1]))


class OffsetKeys(NamedTuple):
    """Keys for the offset of each pair of tokens, along each axis; their products are a bias."""

    rows: Tensor
    """For a row and another one, (h, h, d)."""

    columns: Tensor
    """For a column and another one, (w, w, d)."""

    class_tokens: int
    """Leading tokens that are not on the grid, and get no bias."""

    def bias(self, q: Tensor) -> Tensor:
        """Queries (B, heads, n + h*w, d) -> (B, heads, n + h*w, n + h*w)."""
        grid = (self.rows.shape[0], self.columns.shape[0])
        queries = (q[:, :, self.class_tokens :] * q.shape[-1] ** -0.5).unflatten(2, grid)
        rows, columns = self.rows.to(q.dtype), self.columns.to(q.dtype)
        by_row = torch.einsum('bnijd,ikd->bnijk', queries, rows)[..., :, None]
        by_column = torch.einsum('bnijd,jld->bnijl', queries, columns)[..., None, :]
        products = (by_row + by_column).flatten(4, 5).flatten(2, 3)
        return _without_class_tokens(products, self.class_tokens)


class RelativePosition:
    """Base class: attention without a position table, as the detector CFDT was released.

    A subclass gives the logits of N queries and M keys a bias, or attends in its own way.

    Args:
        query_hw: Grid (h, w) of the queries that the table was learned for, in tokens.
        key_hw: Grid of the keys that the table was learned for.
        class_tokens: Leading tokens that are not on the grid.
    """

    def __init__(self, query_hw: Grid, key_hw: Grid, class_tokens: int = 0):
        self.query_hw, self.key_hw, self.class_tokens = query_hw, key_hw, class_tokens

    def new_table(self, heads: int, width: int) -> nn.Parameter | None:
        """A table for heads of ``width`` channels, or None for attention without one."""

    def between(
        self, table: Tensor | None, query_hw: Grid, key_hw: Grid
    ) -> 'Factors | OffsetKeys | Tensor | Form | None':
        """The bias of the logits of queries and keys on these grids.

        The bias itself, (1, heads, N, M); or its factors; or keys for offsets, which depend on
        queries; or None. A position that does not add a bias returns how to attend, a ``Form``.
        """

    @classmethod
    def pretrained_table(cls) -> Table | None:
        """How a table is converted to another pretraining size, or None without one."""


class GridRelativePosition(RelativePosition):
    """Bicubic over the grid of the queries and over the grid of the keys (ours).

    The table's rows and columns are treated as places on a grid, so neighbours stay neighbours. On
    the pretraining grid it is the identity.
    """

    def new_table(self, heads: int, width: int) -> nn.Parameter:
        """Draw a table (1, heads, N_pre, M_pre) from N(0, 1), as published."""
        return nn.Parameter(torch.randn(1, heads, area(self.query_hw), area(self.key_hw)))

    def between(self, table: Tensor, query_hw: Grid, key_hw: Grid) -> Factors:
        """(1, heads, N_pre, M_pre) -> Q R, and K's rows (h, h_pre) and columns."""
        queries = resize_grid(table, self.query_hw, query_hw)
        return Factors(queries, *axis_weights(self.key_hw, key_hw, table))

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
        return cls(from_query_hw, from_key_hw).between(table, to_query_hw, to_key_hw).bias()

    @classmethod
    def pretrained_table(cls) -> Table:
        """It is resized as for an image."""
        return Table(cls.resize, dims=4, grid_axes=(2, 3))


class FlatRelativePosition(GridRelativePosition):
    """Bicubic over the (N_pre, M_pre) matrix as if it were an image: each grid is one column.

    The same authors' other code does this (the detector CFDT and Vision GNN). It mixes the end of
    one grid row with the start of the next, so use it only for weights that were trained with it.
    """

    def __init__(self, query_hw: Grid, key_hw: Grid, class_tokens: int = 0):
        super().__init__((area(query_hw), 1), (area(key_hw), 1), class_tokens)

    def between(self, table: Tensor, query_hw: Grid, key_hw: Grid) -> Factors:
        """(1, heads, N_pre, M_pre) -> Q R, and K's rows (M, M_pre) and columns (1, 1)."""
        return super().between(table, (area(query_hw), 1), (area(key_hw), 1))


class OffsetTable(RelativePosition):
    """Base class of tables for the offset (dy, dx) between two tokens of one grid.

    All blocks share the table (ours), which is resized bicubically for a different grid. Class
    tokens have no offset, and no bias.
    """


class OffsetBiasTable(OffsetTable):
    """A learned bias for each head and each offset, as in Swin."""

    def new_table(self, heads: int, width: int) -> nn.Parameter:
        """A table (1, (2h - 1) * (2w - 1), heads) of zeros; the backbone draws it."""
        return nn.Parameter(torch.zeros(1, area(_offsets(self.query_hw)), heads))

    def between(self, table: Tensor, query_hw: Grid, key_hw: Grid) -> Tensor:
        """The table -> (1, heads, n + h*w, n + h*w)."""
        table = resize_grid(table, _offsets(self.query_hw), _offsets(query_hw))
        rows, columns = (_offset_indices(side, table) for side in query_hw)
        pairs = rows[:, None, :, None] * _offsets(query_hw)[1] + columns[None, :, None, :]
        bias = table[0, pairs.flatten(2).flatten(0, 1)]
        return _without_class_tokens(bias.permute(2, 0, 1)[None], self.class_tokens)

    @classmethod
    def pretrained_table(cls) -> Table:
        """It is resized as a grid of offsets."""
        return Table(resize_grid, dims=3, grid_axes=(1,))


class OffsetKeyTable(OffsetTable):
    """Relative positions of Shaw et al. (arXiv 1803.02155) on a grid: keys of rows and columns.

    The logit of two tokens gains the product of the query with a learned key for their offset along
    each axis. All heads share the keys (ours).
    """

    def new_table(self, heads: int, width: int) -> nn.Parameter:
        """Keys of rows, then of columns, (1, (2h - 1) + (2w - 1), d), zeros."""
        return nn.Parameter(torch.zeros(1, sum(_offsets(self.query_hw)), width))

    def between(self, table: Tensor, query_hw: Grid, key_hw: Grid) -> OffsetKeys:
        """The keys -> those of each pair of rows, and of each pair of columns."""
        keys = resize_axes(table, _offsets(self.query_hw), _offsets(query_hw))[0]
        rows, columns = (
            of_axis[_offset_indices(side, table)]
            for of_axis, side in zip(keys.split(_offsets(query_hw)), query_hw, strict=True)
        )
        return OffsetKeys(rows, columns, self.class_tokens)

    @classmethod
    def pretrained_table(cls) -> Table:
        """Each axis is resized by itself."""
        return Table(resize_axes, dims=3, grid_axes=(1,), side=half)


def _offsets(hw: Grid) -> Grid:
    """Number of offsets between two places of a grid along each axis, the negative ones first."""
    return 2 * hw[0] - 1, 2 * hw[1] - 1


def _offset_indices(side: int, like: Tensor) -> Tensor:
    """For two places along an axis, the index of their offset, (side, side)."""
    places = torch.arange(side, device=like.device)
    return places[None] - places[:, None] + side - 1


def _without_class_tokens(bias: Tensor, class_tokens: int) -> Tensor:
    """(..., N, N) -> (..., n + N, n + N): zeros for n class tokens, as query and as key."""
    return F.pad(bias, (class_tokens, 0, class_tokens, 0))


RELATIVE_POSITIONS: dict[str, type[RelativePosition]] = {
    'grid': GridRelativePosition,
    'flat': FlatRelativePosition,
    'none': RelativePosition,
}
"""Values of a pyramid's option ``relative_position``."""
