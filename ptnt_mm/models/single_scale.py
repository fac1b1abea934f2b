"""Base class of the single-scale backbones, TNT and CPVT."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from ptnt_mm.models.backbone import (
    Backbone,
    FeatureInfo,
    check_indices,
    check_pretrain_img_size,
    choose,
    choose_position,
    drop_path_rates,
    is_positive,
    position_of,
)
from ptnt_mm.models.blocks import OuterBlock
from ptnt_mm.models.position_tables import GridRelativePosition
from ptnt_mm.models.positions import POSITIONS
from ptnt_mm.models.stages import BlockSequence
from ptnt_mm.models.tokens import SINGLE_SCALE_PATCH, Grid
from ptnt_mm.weights.names import Weights
from ptnt_mm.weights.networks import Table

OUT_TYPES = {'featmap': False, 'cls_token': True}
"""Whether ``forward`` returns class tokens in place of maps, by mmpretrain's names."""


class SingleScaleBackbone(BlockSequence, Backbone):
    """Blocks on the grid of patches of 16 x 16 pixels, optionally with a class token first.

    The constructor of a subclass calls this one, creates its stem, and calls :meth:`_build_blocks`.
    Its :meth:`embed` runs the stem. Only the blocks that the chosen outputs need are built.

    Args:
        arch: The row of the arch.
        dim: Channels of an outer token.
        class_tokens: 1 with a class token, otherwise 0.
        out_indices: See the subclasses.
        pretrain_img_size: Side in pixels, a multiple of 16, that a position table belongs to.
        out_type: What :meth:`forward` returns for each output, see ``OUT_TYPES``.
        frozen_stages: -1 freezes nothing, 0 the stem with its tables and class token, k the first
            k blocks too.
        with_cp: Recompute blocks in the backward pass.
        init_cfg: Pretrained weights.
    """

    patch = SINGLE_SCALE_PATCH
    size_step = SINGLE_SCALE_PATCH
    parts = (
        (r'blocks\.\d+\.(?:inner_|proj)', 'inner'),
        (r'blocks', 'outer'),
        (r'norm', 'output norms'),
        (r'', 'stem'),
    )

    def __init__(
        self,
        arch: Mapping[str, int],
        *,
        dim: int,
        class_tokens: int,
        out_indices: Sequence[int],
        pretrain_img_size: int,
        out_type: str,
        frozen_stages: int,
        with_cp: bool,
        init_cfg: dict | None,
    ):
        _check_numbers(arch)
        super().__init__(frozen_stages, arch['depth'], init_cfg)
        self.depth, self.dim = arch['depth'], dim
        self.out_indices = check_indices('out_indices', out_indices, self.depth, 'blocks', '(-1,)')
        self.feature_info = FeatureInfo(
            'blocks', (dim,) * self.depth, (SINGLE_SCALE_PATCH,) * self.depth, self.out_indices
        )
        side = check_pretrain_img_size(pretrain_img_size, self.size_step)
        self.pretrain_hw = (side // SINGLE_SCALE_PATCH,) * 2
        self.class_tokens = class_tokens
        self.gives_class_token = choose('out_type', out_type, OUT_TYPES)
        if self.gives_class_token and not class_tokens:
            raise ValueError(
                "out_type='cls_token': there is no class token, so average the map instead"
            )
        self.with_cp = with_cp

    def _build_blocks(
        self,
        new_blocks: Sequence[Callable[..., OuterBlock]],
        position: str | dict,
        drop_rate: float,
        drop_path_rate: float,
    ) -> None:
        """Build everything after the stem, and initialise all weights.

        Args:
            new_blocks: For each block, a function that creates it from ``drop_path`` and ``peg``.
            position: Position encoding of the tokens.
            drop_rate: Dropout of the tokens after the position table.
            drop_path_rate: Rate of dropping a residual branch in the last block.
        """
        if self.class_tokens:
            self.cls_token = nn.Parameter(torch.zeros(1, 1, self.dim))
        new_position = choose_position('position', position, _positions())
        self.position = new_position(self.dim, self.pretrain_hw, self.class_tokens)
        self.register_parameter('outer_pos', self.position.new_table())
        self.pos_drop = nn.Dropout(drop_rate)
        built = self.out_indices[-1] + 1
        (rates,) = drop_path_rates(drop_path_rate, (self.depth,))
        self._create_blocks(
            new_blocks[:built],
            rates[:built],
            self.pretrain_hw,
            lambda *grids: self.position.relative_position(*grids, self.class_tokens),
            self.position.new_pegs(self.dim, built),
            self.with_cp,
        )
        if self.relative_pos is not None:  # no published file has one
            self.pretrained_may_lack = (*self.pretrained_may_lack, 'relative_pos')
        self.norm = nn.LayerNorm(self.dim) if self.out_indices[-1] == self.depth - 1 else None
        self._init_and_freeze()

    @classmethod
    def options_of(cls, weights: Weights) -> dict[str, Any]:
        """The position encoding, where it is an option and not the default."""
        setting = signature(cls).parameters.get('position')
        position = position_of(weights, _positions())
        return {} if setting is None or setting.default == position else dict(position=position)

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """(B, 3, H, W) -> one map (B, C, ceil(H / 16), ceil(W / 16)) per output, contiguous.

        The last block's map is the output of the final LayerNorm; maps exclude the class token.
        With ``out_type='cls_token'``, the class token (B, C) is returned in place of each map.

        Raises:
            ValueError: for a different number of channels or axes, integers, or a side below 16.
        """
        if self.gives_class_token:
            return tuple(outer[:, 0] for _, outer, _ in self.forward_tokens(image))
        return super().forward(image)

    def pretrained_tables(self) -> dict[str, Table]:
        """The table of the outer tokens, and that between pairs of them if there is one."""
        return Backbone.pretrained_tables(self) | BlockSequence.pretrained_tables(self)

    def forward_tokens(self, image: Tensor) -> list[tuple[Tensor | None, Tensor, Grid]]:
        """(B, 3, H, W) -> per output: inner (B*N, m, c) or None, outer (B, n + N, C), hw.

        The class token comes first, if there is one. Outer tokens of the last block are normalised.

        Raises:
            ValueError: as :meth:`forward`.
        """
        inner, outer, hw = self.embed(self._padded(image))
        # timm prunes blocks after the last that it returns, so not all outputs need to be there.
        returned = self._run_blocks(inner, self._add_positions(outer, hw), hw, self.out_indices)
        return [(inner, self._normed(i, outer), hw) for i, (inner, outer) in returned.items()]

    @abstractmethod
    def embed(self, image: Tensor) -> tuple[Tensor | None, Tensor, Grid]:
        """(B, 3, H, W) -> inner (B*N, m, c) or None, outer (B, N, C), hw (H/16, W/16).

        Sides are multiples of 16. Networks without words return None in their place.
        """

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """The depth of a parameter and the number of depths, for layer-wise learning rates.

        0 is the stem with tables and class token, each block has one depth, and the last is the
        final norm.

        Args:
            param_name: Name of the parameter, as in ``named_parameters()``.
            prefix: Prefix of the backbone in a larger model, such as ``'backbone.'``.
        """
        kind, *path = param_name.removeprefix(prefix).split('.')
        last = len(self.blocks) + 1
        if kind == 'blocks':
            return int(path[0]) + 1, last + 1
        return (last if kind == 'norm' else 0), last + 1

    def _add_positions(self, outer: Tensor, hw: Grid) -> Tensor:
        """(B, N, C) -> with positions, (B, n + N, C) with n class tokens first."""
        if self.class_tokens:
            first = self.cls_token.to(outer.dtype).expand(outer.shape[0], -1, -1)
            outer = torch.cat([first, outer], dim=1)
        encoding = self.position.encode(self.outer_pos, hw, like=outer)
        if encoding is not None:
            outer = outer + encoding.to(outer.dtype)
        return self.pos_drop(outer)

    def _normed(self, i: int, outer: Tensor) -> Tensor:
        """The output of block ``i``; that of the last block is normalised."""
        return self.norm(outer) if i == self.depth - 1 else outer

    def _frozen_modules(self) -> list[nn.Module]:
        """The stem for 0, and the first k blocks for k."""
        if self.frozen_stages < 0:
            return []
        after_stem = ('blocks', 'norm')
        stem = [module for name, module in self.named_children() if name not in after_stem]
        return [*stem, *self.blocks[: self.frozen_stages]]


def _positions() -> list[str]:
    """The supported encodings; a pyramid's relative tables have no entry for a class token."""
    return [
        name
        for name, cls in POSITIONS.items()
        if not issubclass(cls.relative_position, GridRelativePosition)
    ]


def _check_numbers(arch: Mapping[str, int]) -> None:
    for key, number in arch.items():
        if not is_positive(number):
            raise ValueError(f"arch['{key}'] is {number!r}: expected an integer above 0")
