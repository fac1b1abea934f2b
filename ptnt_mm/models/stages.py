"""Blocks on one grid: a stage of a pyramid, or all blocks of a single-scale network."""

from collections.abc import Callable, Collection, Sequence

from torch import Tensor, nn

from ptnt_mm.models.blocks import OuterBlock
from ptnt_mm.models.kernels.memory import run_block
from ptnt_mm.models.pegs import PEG
from ptnt_mm.models.position_tables import RelativePosition
from ptnt_mm.models.tokens import Grid, reduced
from ptnt_mm.weights.networks import Table


class BlockSequence(nn.Module):
    """Blocks that run one after the other and share positions between pairs of tokens.

    A subclass calls :meth:`_create_blocks` in its constructor. In published files, a pyramid's
    stages are modules of their network, and a single-scale network has its blocks itself.
    """

    def _create_blocks(
        self,
        new_blocks: Sequence[Callable[..., OuterBlock]],
        drop_paths: Sequence[float],
        pretrain_hw: Grid,
        relative_position: Callable[[Grid, Grid], RelativePosition],
        pegs: dict[int, PEG],
        with_cp: bool,
    ) -> None:
        """Create the blocks, the table of positions between pairs, and the PEG of the input.

        Args:
            new_blocks: For each block, a function that creates it from ``drop_path`` and ``peg``.
            drop_paths: Rate of dropping a residual branch, for each block.
            pretrain_hw: Grid that the position table belongs to, in tokens.
            relative_position: Creates the table from the grids of queries and keys, as a class of
                ``position_tables.py`` does.
            pegs: Position encoding generators by the block that they follow, -1 for the input.
            with_cp: Recompute each block in the backward pass instead of keeping its activations.
        """
        self.with_cp = with_cp
        self.peg = pegs.get(-1)
        self.blocks = nn.ModuleList(
            new_block(drop_path=rate, peg=pegs.get(index))
            for index, (new_block, rate) in enumerate(zip(new_blocks, drop_paths, strict=True))
        )
        self.relative_position = relative_position(pretrain_hw, self._key_hw(pretrain_hw))
        attention = self.blocks[0].outer_attn
        table = self.relative_position.new_table(attention.num_heads, attention.head_width)
        self.register_parameter('relative_pos', table)

    def _run_blocks(
        self, inner: Tensor | None, outer: Tensor, hw: Grid, returned: Collection[int]
    ) -> dict[int, tuple[Tensor | None, Tensor]]:
        """Inner (B*N, m, c) or None, outer (B, n + N, C) -> the same after each returned block."""
        bias = self.relative_position.between(self.relative_pos, hw, self._key_hw(hw))
        form = self.blocks[0].outer_attn.form(bias, outer)
        if self.peg is not None:
            outer = self.peg(outer, hw)
        outputs = {}
        for i, block in enumerate(self.blocks):
            inner, outer = run_block(block, self.with_cp, inner, outer, hw, form)
            if i in returned:
                outputs[i] = inner, outer
        return outputs

    def _key_hw(self, hw: Grid) -> Grid:
        """The grid of the keys, in tokens, for a grid of sentences."""
        return reduced(hw, self.blocks[0].outer_attn.sr_ratio)

    def pretrained_tables(self) -> dict[str, Table]:
        """The table between queries and keys, if there is one."""
        table = self.relative_position.pretrained_table()
        return dict(relative_pos=table) if table else {}


class Stage(BlockSequence):
    """Blocks on one grid of a pyramid, built as :meth:`_create_blocks` describes."""

    def __init__(
        self,
        new_blocks: Sequence[Callable[..., OuterBlock]],
        drop_paths: Sequence[float],
        pretrain_hw: Grid,
        relative_position: Callable[[Grid, Grid], RelativePosition],
        pegs: dict[int, PEG],
        with_cp: bool = False,
    ):
        super().__init__()
        self._create_blocks(new_blocks, drop_paths, pretrain_hw, relative_position, pegs, with_cp)

    def forward(
        self, inner: Tensor | None, outer: Tensor, hw: Grid
    ) -> tuple[Tensor | None, Tensor]:
        """Inner (B*N, 16, c), outer (B, N, C) -> the same; ``hw`` in tokens.

        Without an inner transformer, ``inner`` may be None.
        """
        last = len(self.blocks) - 1
        return self._run_blocks(inner, outer, hw, [last])[last]
