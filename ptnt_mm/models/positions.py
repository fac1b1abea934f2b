"""Positions of tokens: tables, sinusoids, generators (PEG) and relative tables, on any grid.

A backbone adds a :class:`PositionEncoding` to its tokens. A :class:`RelativePosition` gives the
attention a bias for each pair of a query and a (pooled) key. Learned tables belong to the grid of
the pretraining images, and are resized to the grid of each image.

The bias is a table ``R`` of shape (1, heads, N_pre, M_pre). Resizing is linear, so the table of a
different grid is ``Q R K^T`` with two matrices that depend only on the grids. The classes return
its factors: an attention may multiply them and add the product to its logits, or fold them into
queries and keys. They hold no weights: the stage owns the table.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.kernels.memory import transforms_active
from ptnt_mm.models.tokens import Grid, area, map_to_tokens, tokens_to_map
from ptnt_mm.utils.numbers import is_integer
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.weights.networks import Table


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


def _without_class_tokens(bias: Tensor, class_tokens: int) -> Tensor:
    """(..., N, N) -> (..., n + N, n + N): zeros for n class tokens, as query and as key."""
    return F.pad(bias, (class_tokens, 0, class_tokens, 0))


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


class PositionEncoding:
    """Base class; adds no position information.

    A subclass adds it in one of five ways: a table that the backbone owns, values added to the
    tokens before the first block, generators after some blocks, relative tables of a pyramid's
    stages, or a table of offsets between two tokens.

    Args:
        dim: Channels of a token.
        hw: The pretraining grid, in tokens.
        class_tokens: Leading tokens that are not on the grid.
    """

    options: tuple[str, ...] = ()
    """Additional arguments that a config may set."""

    relative = False
    """Whether attention adds relative position tables to its logits."""

    offset_table: Table | None = None
    """How a table of offsets is converted to another pretraining size."""

    def __init__(self, dim: int, hw: Grid, class_tokens: int = 0):
        self.dim, self.hw, self.class_tokens = dim, hw, class_tokens

    def new_table(self) -> nn.Parameter | None:
        """A table (1, n + h*w, C) for n class tokens, or None; the backbone initialises it."""

    def encode(self, table: Tensor | None, hw: Grid, like: Tensor) -> Tensor | None:
        """Values to add to the tokens, (1, n + h*w, C) on the device of ``like``, or None."""

    def new_offsets(self, heads: int, width: int) -> nn.Parameter | None:
        """A table of offsets for heads of ``width`` channels, or None; the backbone draws it."""

    def offset_bias(self, table: Tensor | None, hw: Grid) -> Tensor | OffsetKeys | None:
        """What a table of offsets adds to the logits of a single scale's blocks, or None."""

    def new_pegs(self, dim: int, depth: int) -> dict[int, PEG]:
        """Generators for tokens of ``dim`` channels, by the block that they follow.

        Args:
            dim: Channels of a token; in a pyramid each stage has its own.
            depth: Number of blocks. They are counted from 0; -1 stands for the input.
        """
        return {}


class LearnedPosition(PositionEncoding):
    """A learned table, resized bicubically over its grid; class tokens keep their entries."""

    def new_table(self) -> nn.Parameter:
        """A table (1, n + h*w, C) of zeros."""
        return nn.Parameter(torch.zeros(1, self.class_tokens + area(self.hw), self.dim))

    def encode(self, table: Tensor, hw: Grid, like: Tensor) -> Tensor:
        """(1, n + h_pre*w_pre, C) -> (1, n + h*w, C)."""
        return resize_learned(table, self.hw, hw)


class LearnedAndRelativePosition(LearnedPosition):
    """A learned table for sentences, and relative tables: PyramidTNT as published."""

    relative = True


class OnlyRelativePosition(PositionEncoding):
    """Relative tables alone."""

    relative = True


class OffsetPosition(PositionEncoding):
    """A learned bias for each head and each offset (dy, dx) between two tokens, as in Swin.

    All blocks share the table (ours), which is resized bicubically for a different grid. Class
    tokens have no offset, and no bias.
    """

    offset_table = Table(resize_grid, dims=3, grid_axes=(1,))

    def new_offsets(self, heads: int, width: int) -> nn.Parameter:
        """A table (1, (2h - 1) * (2w - 1), heads) of zeros."""
        return nn.Parameter(torch.zeros(1, area(_offsets(self.hw)), heads))

    def offset_bias(self, table: Tensor, hw: Grid) -> Tensor:
        """The table -> (1, heads, n + h*w, n + h*w)."""
        table = resize_grid(table, _offsets(self.hw), _offsets(hw))
        rows, columns = (_offset_indices(side, table) for side in hw)
        pairs = rows[:, None, :, None] * _offsets(hw)[1] + columns[None, :, None, :]
        bias = table[0, pairs.flatten(2).flatten(0, 1)]
        return _without_class_tokens(bias.permute(2, 0, 1)[None], self.class_tokens)


class OffsetKeyPosition(PositionEncoding):
    """Relative positions of Shaw et al. (arXiv 1803.02155) on a grid: keys of rows and columns.

    The logit of two tokens gains the product of the query with a learned key for their offset along
    each axis. All heads and blocks share the keys (ours), which are resized bicubically. Class
    tokens have no offset.
    """

    offset_table = Table(resize_axes, dims=3, grid_axes=(1,), side=half)

    def new_offsets(self, heads: int, width: int) -> nn.Parameter:
        """Keys of rows, then of columns, (1, (2h - 1) + (2w - 1), d), zeros."""
        return nn.Parameter(torch.zeros(1, sum(_offsets(self.hw)), width))

    def offset_bias(self, table: Tensor, hw: Grid) -> OffsetKeys:
        """The keys -> those of each pair of rows, and of each pair of columns."""
        keys = resize_axes(table, _offsets(self.hw), _offsets(hw))[0].split(_offsets(hw))
        rows, columns = (
            of_axis[_offset_indices(side, table)] for of_axis, side in zip(keys, hw, strict=True)
        )
        return OffsetKeys(rows, columns, self.class_tokens)


def _offsets(hw: Grid) -> Grid:
    """Number of offsets between two places of a grid along each axis, the negative ones first."""
    return 2 * hw[0] - 1, 2 * hw[1] - 1


def _offset_indices(side: int, like: Tensor) -> Tensor:
    """For two places along an axis, the index of their offset, (side, side)."""
    places = torch.arange(side, device=like.device)
    return places[None] - places[:, None] + side - 1


class SinusoidalPosition(PositionEncoding):
    """Fixed sines and cosines: half of the channels encode the row, half the column.

    The wavelengths grow as in arXiv 1706.03762, from 2 pi to nearly 20000 pi tokens; class tokens
    get zeros.

    Raises:
        ValueError: if the width is not a multiple of 4: a sine and a cosine for each axis.
    """

    def __init__(self, dim: int, hw: Grid, class_tokens: int = 0):
        super().__init__(dim, hw, class_tokens)
        if dim % 4:
            raise ValueError(f'the width is {dim}: a sinusoidal position needs a multiple of 4')

    def encode(self, table: None, hw: Grid, like: Tensor) -> Tensor:
        """Nothing -> (1, n + h*w, C), float32."""
        quarter = self.dim // 4
        steps = torch.arange(quarter, dtype=torch.float32, device=like.device)
        frequencies = 10000 ** (-steps / quarter)
        rows, columns = (
            torch.arange(side, dtype=torch.float32, device=like.device)[:, None] * frequencies
            for side in hw
        )
        rows = torch.cat([rows.sin(), rows.cos()], dim=1)[:, None].expand(*hw, -1)
        columns = torch.cat([columns.sin(), columns.cos()], dim=1)[None].expand(*hw, -1)
        waves = torch.cat([rows, columns], dim=2).flatten(0, 1)[None]
        return F.pad(waves, (0, 0, self.class_tokens, 0))


class PEGPosition(PositionEncoding):
    """A :class:`PEG` after some blocks (arXiv 2102.10882).

    Args:
        dim: Channels of a token.
        hw: Not used.
        class_tokens: Leading tokens that are not on the grid.
        blocks: The blocks that a PEG follows, counted from 0; -1 stands for the input.
        kernel_size: Side of the convolutions, an odd number of tokens.
        padding_mode: Padding of the convolutions, see :class:`PEG`.
        kind: Layers of a PEG, a key of ``PEG_KINDS``.
        frozen: Whether they keep their random initialisation.

    Raises:
        ValueError: for an even kernel, an unknown kind, or blocks that are not a list of integers
            from -1.
    """

    options = ('blocks', 'kernel_size', 'padding_mode', 'kind', 'frozen')

    def __init__(
        self,
        dim: int,
        hw: Grid,
        class_tokens: int = 0,
        blocks: Sequence[int] = (0,),
        kernel_size: int = 3,
        padding_mode: str = 'zeros',
        kind: str = 'depthwise',
        frozen: bool = False,
    ):
        super().__init__(dim, hw, class_tokens)
        if kind not in PEG_KINDS:
            raise ValueError(unknown_name('kind of a PEG', kind, PEG_KINDS))
        if not is_integer(kernel_size) or kernel_size < 1 or kernel_size % 2 == 0:
            raise ValueError(f'kernel_size of a PEG is {kernel_size!r}: expected an odd number')
        if not isinstance(blocks, Sequence) or not all(map(is_integer, blocks)):
            raise ValueError(f'blocks of a PEG are {blocks!r}: expected a list such as (0,)')
        self.blocks = blocks
        self.layers = dict(
            kernel_size=kernel_size,
            padding_mode=padding_mode,
            class_tokens=class_tokens,
            kind=kind,
            frozen=frozen,
        )

    def new_pegs(self, dim: int, depth: int) -> dict[int, PEG]:
        """One PEG for tokens of ``dim`` channels for each of ``blocks``.

        Raises:
            ValueError: if a block does not exist.
        """
        if not self.blocks or not all(-1 <= block < depth for block in self.blocks):
            raise ValueError(
                f'blocks of a PEG are {self.blocks}: expected some of -1, the input, to '
                f'{depth - 1}, the last of {depth} blocks'
            )
        return {block: PEG(dim, **self.layers) for block in self.blocks}


POSITIONS: dict[str, type[PositionEncoding]] = {
    'learned': LearnedPosition,
    'learned_and_relative': LearnedAndRelativePosition,
    'relative': OnlyRelativePosition,
    'relative_2d': OffsetPosition,
    'relative_shaw': OffsetKeyPosition,
    'sinusoidal': SinusoidalPosition,
    'peg': PEGPosition,
    'none': PositionEncoding,
}
"""Values of a backbone's option ``position``; each backbone supports a subset."""


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
        """(1, heads, N_pre, M_pre) -> Q R, and K's rows (h, h_pre) and columns; or None.

        A position that does not add a bias returns how to attend, a ``Form``.
        """

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
