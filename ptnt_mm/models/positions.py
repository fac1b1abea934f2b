"""Position encodings of tokens: learned tables, sinusoids, generators (PEG), relative tables.

A backbone adds a :class:`PositionEncoding` to its tokens, on any grid.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.pegs import PEG, PEG_KINDS
from ptnt_mm.models.position_tables import (
    GridRelativePosition,
    OffsetBiasTable,
    OffsetKeyTable,
    RelativePosition,
    resize_learned,
)
from ptnt_mm.models.tokens import Grid, area
from ptnt_mm.utils.numbers import is_integer
from ptnt_mm.utils.text import unknown_name


class PositionEncoding:
    """Base class; adds no position information.

    A subclass adds it in one of four ways: a table that the backbone owns, values added to the
    tokens before the first block, generators after some blocks, or positions between pairs of
    tokens.

    Args:
        dim: Channels of a token.
        hw: The pretraining grid, in tokens.
        class_tokens: Leading tokens that are not on the grid.
    """

    options: tuple[str, ...] = ()
    """Additional arguments that a config may set."""

    relative_position: type[RelativePosition] = RelativePosition
    """Positions between pairs of tokens, for the attention."""

    def __init__(self, dim: int, hw: Grid, class_tokens: int = 0):
        self.dim, self.hw, self.class_tokens = dim, hw, class_tokens

    def new_table(self) -> nn.Parameter | None:
        """A table (1, n + h*w, C) for n class tokens, or None; the backbone initialises it."""

    def encode(self, table: Tensor | None, hw: Grid, like: Tensor) -> Tensor | None:
        """Values to add to the tokens, (1, n + h*w, C) on the device of ``like``, or None."""

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

    relative_position = GridRelativePosition


class OnlyRelativePosition(PositionEncoding):
    """Relative tables alone."""

    relative_position = GridRelativePosition


class OffsetPosition(PositionEncoding):
    """A learned bias for each head and each offset between two tokens, as in Swin.

    Class tokens have none. See :class:`OffsetBiasTable`.
    """

    relative_position = OffsetBiasTable


class OffsetKeyPosition(PositionEncoding):
    """A learned key for each offset along an axis, for all queries (arXiv 1803.02155).

    Class tokens have none. See :class:`OffsetKeyTable`.
    """

    relative_position = OffsetKeyTable


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
