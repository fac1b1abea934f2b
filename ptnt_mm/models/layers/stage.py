"""A stage: blocks that share one relative position table."""

from functools import partial

from torch import Tensor, nn

from ptnt_mm.models.layers.block import BlockOptions, NestedBlock, OuterBlock, run_block
from ptnt_mm.models.layers.peg import PEG
from ptnt_mm.models.layers.relative_position import RelativePosition
from ptnt_mm.models.layers.shapes import Grid, reduced


class Stage(nn.Module):
    """Blocks on one grid. The first ``inner_depth`` of them have an inner transformer.

    Args:
        inner_dim: Channels of an inner token.
        outer_dim: Channels of an outer token.
        inner_heads: Heads of the inner attention.
        outer_heads: Heads of the outer attention.
        inner_depth: How many blocks, from the first, have an inner transformer.
        sr_ratio: Side of the windows that outer keys are averaged over, in tokens.
        drop_paths: Rate of dropping a residual branch, for each block.
        pretrain_hw: Grid that the position table belongs to, in tokens.
        relative_position: How the table is resized, a class of ``relative_position.py``.
        pegs: Position encoding generators by the block that they follow, -1 for the stage's input.
        options: Options that all blocks of a backbone share.
        with_cp: Recompute each block in the backward pass instead of keeping its activations.
    """

    def __init__(
        self,
        inner_dim: int,
        outer_dim: int,
        inner_heads: int,
        outer_heads: int,
        inner_depth: int,
        sr_ratio: int,
        drop_paths: list[float],
        pretrain_hw: Grid,
        relative_position: type[RelativePosition],
        pegs: dict[int, PEG],
        options: BlockOptions,
        with_cp: bool,
    ):
        super().__init__()
        self.sr_ratio = sr_ratio
        self.with_cp = with_cp
        self.prepare_bias = options.attention.prepare_bias
        outer = partial(OuterBlock, outer_dim, outer_heads, sr_ratio, options=options)
        nested = partial(
            NestedBlock, inner_dim, outer_dim, inner_heads, outer_heads, sr_ratio, options=options
        )
        self.peg = pegs.get(-1)
        self.blocks = nn.ModuleList(
            (nested if index < inner_depth else outer)(drop_path=rate, peg=pegs.get(index))
            for index, rate in enumerate(drop_paths)
        )
        self.relative_position = relative_position(pretrain_hw, self.key_hw(pretrain_hw))
        self.register_parameter('relative_pos', self.relative_position.new_table(outer_heads))

    def key_hw(self, hw: Grid) -> Grid:
        """The grid of the keys, in tokens, for a grid of sentences."""
        return reduced(hw, self.sr_ratio)

    def forward(self, inner: Tensor, outer: Tensor, hw: Grid) -> tuple[Tensor, Tensor]:
        """Inner (B*N, 16, c), outer (B, N, C) -> the same; ``hw`` in tokens."""
        factors = self.relative_position.factors(self.relative_pos, hw, self.key_hw(hw))
        bias = self.prepare_bias(factors)
        if self.peg is not None:
            outer = self.peg(outer, hw)
        for block in self.blocks:
            inner, outer = run_block(block, self.with_cp, inner, outer, hw, bias)
        return inner, outer
