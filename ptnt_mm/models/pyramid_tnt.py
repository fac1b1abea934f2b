"""PyramidTNT (arXiv 2201.00978) as a backbone for dense prediction."""

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor, nn

from ptnt_mm.models.archs import ARCHS, NUM_STAGES, SR_RATIOS
from ptnt_mm.models.arguments import (
    check_heads,
    check_out_indices,
    check_pretrain_img_size,
    choose,
    choose_position,
    is_positive,
    read_arch,
)
from ptnt_mm.models.backbone import Backbone
from ptnt_mm.models.feature_info import FeatureInfo
from ptnt_mm.models.layers.aggregation import SentenceAggregation, WordAggregation
from ptnt_mm.models.layers.attention import OUTER_ATTENTIONS
from ptnt_mm.models.layers.block import BlockOptions
from ptnt_mm.models.layers.drop import drop_path_rates
from ptnt_mm.models.layers.norm import OutputNorm, is_batch_norm
from ptnt_mm.models.layers.position import POSITIONS
from ptnt_mm.models.layers.relative_position import RELATIVE_POSITIONS, RelativePosition
from ptnt_mm.models.layers.shapes import PATCH, WORDS, Grid, tokens_to_contiguous_map
from ptnt_mm.models.layers.stage import Stage
from ptnt_mm.models.layers.stem import Stem
from ptnt_mm.models.layers.tables import keep_first
from ptnt_mm.registry import MODELS


@MODELS.register_module()
class PyramidTNT(Backbone):
    """Transformer in Transformer with four stages, at strides 8, 16, 32 and 64.

    Takes images of any size from 8 x 8 pixels. Sides that are not a multiple of 8 are padded at the
    bottom and right with zeros, the mean colour of normalised images. Only what the chosen
    outputs need is built, so that every parameter receives a gradient.

    Parameters are named as in the authors' checkpoints, which expect RGB images normalised with
    mean and standard deviation 127.5 in every channel.

    Args:
        arch: 'tiny', 'small', 'medium', 'base', their aliases 'ti', 's', 'm', 'b', or a dict with
            the keys of a row of ``ARCHS``.
        out_indices: The stages whose maps are returned, increasing; 0 is stage 1, 3 or -1 is
            stage 4.
        out_norms: Whether each returned map gets a separate LayerNorm, ``norm0`` to ``norm3``
            (ours; it is unknown whether the paper's detector has them).
        pretrain_img_size: Side in pixels, a multiple of 64, that the position tables belong to.
            The arch's own by default.
        position: Position encoding of sentences: 'learned_and_relative' (the published tables),
            'learned', 'relative', 'sinusoidal', 'peg' or 'none'. A dict with the name as ``type``
            can also set options. A PEG follows the first block of every stage by default;
            ``blocks`` counts within each stage (ours; as arXiv 2104.13840).
        relative_position: How relative position tables are resized to a different grid: 'grid',
            'flat' or 'none' (see ``layers/relative_position.py``). No effect without such tables.
        attention: 'fused', or 'eager' for the published form, which stores every logit.
        mlp_ratio: Hidden width of an MLP as a multiple of the token's width.
        with_se: Whether outer MLPs have squeeze and excitation; no published variant does.
        drop_rate: Dropout of MLPs, of the attention's projection and of the sentence table.
        attn_drop_rate: Dropout of attention weights.
        drop_path_rate: Rate of dropping a residual branch in the last block; it rises linearly
            from 0 in the first.
        frozen_stages: -1 freezes nothing, 0 the stem and the two tables after it, k the first k
            stages too, with the merges between them.
        norm_cfg: The stem's normalisation, see :func:`build_norm`.
        norm_eval: Whether the stem's BatchNorm always uses its running statistics.
        with_cp: Recompute blocks in the backward pass: less memory, more time.
        init_cfg: ``dict(type='Pretrained', checkpoint=...)`` loads weights, or raises.

    Raises:
        ValueError: for an unknown arch, wrong keys or lengths of an arch dict, heads that do not
            divide their width, ``out_indices`` out of range or not increasing, a
            ``pretrain_img_size`` that is not a multiple of 64.
    """

    patch = PATCH

    cost_parts = (
        (r'patch_embed|outer_pos|inner_pos', 'stem'),
        (r'stages\.(\d)\.blocks\.\d+\.(?:inner_|proj)', 'stage {} inner'),
        (r'stages\.(\d)', 'stage {} outer'),
        (r'word_merges|sentence_merges', 'merges'),
        (r'norm\d', 'output norms'),
        (r'norm|head', 'head'),
    )

    def __init__(
        self,
        arch: str | dict,
        out_indices: Sequence[int] = (0, 1, 2, 3),
        out_norms: bool = False,
        pretrain_img_size: int | None = None,
        position: str | dict = 'learned_and_relative',
        relative_position: str = 'grid',
        attention: str = 'fused',
        mlp_ratio: int = 4,
        with_se: bool = False,
        drop_rate: float = 0.0,
        attn_drop_rate: float = 0.0,
        drop_path_rate: float = 0.1,
        frozen_stages: int = -1,
        norm_cfg: dict = dict(type='BN'),  # noqa: B006  MMEngine's idiom; it is only read
        norm_eval: bool = False,
        with_cp: bool = False,
        init_cfg: dict | None = None,
    ):
        super().__init__(frozen_stages, NUM_STAGES, init_cfg)
        arch = read_arch(arch, ARCHS)
        _check_arch(arch)
        self.out_indices = check_out_indices(out_indices, NUM_STAGES, 'stages', '(1, 2, 3)')
        if pretrain_img_size is None:
            pretrain_img_size = arch['pretrain_img_size']
        self.pretrain_img_size = check_pretrain_img_size(
            pretrain_img_size, PATCH * 2 ** (NUM_STAGES - 1)
        )
        self.norm_eval = norm_eval
        strides = [PATCH * 2**i for i in range(NUM_STAGES)]
        self.feature_info = FeatureInfo('stages', arch['outer_dims'], strides, self.out_indices)

        inner_dims, outer_dims = arch['inner_dims'], arch['outer_dims']
        self.patch_embed = Stem(inner_dims[0], outer_dims[0], norm_cfg)
        self.pretrain_hw = (self.pretrain_img_size // PATCH,) * 2
        new_position = choose_position('position', position, tuple(POSITIONS))
        self.position = new_position(outer_dims[0], self.pretrain_hw)
        self.register_parameter('outer_pos', self.position.new_table())
        self.inner_pos = nn.Parameter(torch.zeros(1, WORDS, inner_dims[0]))
        self.pos_drop = nn.Dropout(drop_rate)

        options = BlockOptions(
            attention=choose('attention', attention, OUTER_ATTENTIONS),
            mlp_ratio=mlp_ratio,
            with_se=with_se,
            drop_rate=drop_rate,
            attn_drop_rate=attn_drop_rate,
        )
        table_class = choose('relative_position', relative_position, RELATIVE_POSITIONS)
        if not self.position.relative:
            table_class = RelativePosition
        drop_paths = drop_path_rates(drop_path_rate, arch['depths'])
        self.word_merges = nn.ModuleList()
        self.sentence_merges = nn.ModuleList()
        self.stages = nn.ModuleList()
        for i in range(self.out_indices[-1] + 1):
            if i > 0:
                self.word_merges.append(WordAggregation(inner_dims[i - 1], inner_dims[i]))
                self.sentence_merges.append(SentenceAggregation(outer_dims[i - 1], outer_dims[i]))
            stage = Stage(
                inner_dims[i],
                outer_dims[i],
                arch['inner_heads'][i],
                arch['outer_heads'][i],
                arch['inner_depths'][i],
                SR_RATIOS[i],
                drop_paths[i],
                pretrain_hw=tuple(side // 2**i for side in self.pretrain_hw),
                relative_position=table_class,
                pegs=self.position.new_pegs(outer_dims[i], arch['depths'][i]),
                options=options,
                with_cp=with_cp,
            )
            self.stages.append(stage)
        self.out_norms = out_norms
        if out_norms:
            for i in self.out_indices:
                self.add_module(f'norm{i}', OutputNorm(outer_dims[i]))

        self._draw_and_freeze()

    def forward(self, image: Tensor) -> tuple[Tensor, ...]:
        """(B, 3, H, W) -> one map (B, C_i, ceil(H / stride_i), ceil(W / stride_i)) per output.

        Maps are contiguous.

        Args:
            image: Normalised RGB images of any size.

        Raises:
            ValueError: for a different number of channels or axes, integers, or a side below 8.
        """
        levels = self.forward_tokens(image)
        return tuple(self._output(i, *levels[i][1:]) for i in self.out_indices)

    def forward_tokens(self, image: Tensor) -> list[tuple[Tensor, Tensor, Grid]]:
        """(B, 3, H, W) -> per built stage: inner (B*N, 16, c), outer (B, N, C), hw.

        Raises:
            ValueError: as :meth:`forward`.
        """
        inner, outer, hw = self.patch_embed(self._padded(image))
        # Under autocast the stem's tokens have the lower precision: float32 tables would turn the
        # first stage alone into float32.
        inner = inner + self.inner_pos.to(inner.dtype)
        encoding = self.position.encode(self.outer_pos, hw, like=outer)
        if encoding is not None:
            outer = outer + self.pos_drop(encoding).to(outer.dtype)
        levels = []
        for i, stage in enumerate(self.stages):
            if i > 0:
                inner = self.word_merges[i - 1](inner, hw)
                outer, hw = self.sentence_merges[i - 1](outer, hw)
            inner, outer = stage(inner, outer, hw)
            levels.append((inner, outer, hw))
        return levels

    def train(self, mode: bool = True) -> 'PyramidTNT':
        """Set the mode, but leave frozen modules in evaluation mode."""
        super().train(mode)
        if self.norm_eval:
            for module in filter(is_batch_norm, self.modules()):
                module.eval()
        return self

    def resize_tables_once(self) -> None:
        """Resize position tables for the next image and keep the results, in place.

        All later images must have its size. For a graph of a fixed size.
        """
        super().resize_tables_once()
        for stage in self.stages:
            relative = stage.relative_position
            relative.factors = keep_first(relative.factors)

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """The depth of a parameter and the number of depths, for layer-wise learning rates.

        0 is the stem with its tables, each block has one depth, and the last is that of the output
        norms. Merges and a stage's position table belong to the stage's first block.

        Args:
            param_name: Name of the parameter, as in ``named_parameters()``.
            prefix: Prefix of the backbone in a larger model, such as ``'backbone.'``.
        """
        blocks = (len(stage.blocks) for stage in self.stages)
        *first, last = accumulate(blocks, initial=1)
        kind, *path = param_name.removeprefix(prefix).split('.')
        if kind == 'stages':
            stage, block = int(path[0]), int(path[2]) if path[1] == 'blocks' else 0
            depth = first[stage] + block
        elif kind in ('word_merges', 'sentence_merges'):
            depth = first[int(path[0]) + 1]
        else:
            depth = last if kind == 'head' or kind.startswith('norm') else 0
        return depth, last + 1

    def _output(self, i: int, outer: Tensor, hw: Grid) -> Tensor:
        """Outer (B, N, C) -> (B, C, h, w), contiguous, as the operators of the hosts expect.

        Several of mmcv's, RoIAlign among them, misread a map in channels-last order without an
        error.
        """
        if self.out_norms:
            outer = self.get_submodule(f'norm{i}')(outer)
        return tokens_to_contiguous_map(outer, hw)

    def _frozen_modules(self) -> list[nn.Module]:
        """The stem for 0, and the first k stages with the merges between them for k."""
        if self.frozen_stages < 0:
            return []
        stages, merges = self.frozen_stages, max(self.frozen_stages - 1, 0)
        return [
            self.patch_embed,
            self.pos_drop,
            *self.stages[:stages],
            *self.word_merges[:merges],
            *self.sentence_merges[:merges],
        ]


def _check_arch(arch: dict) -> None:
    for key in sorted(arch.keys() - {'pretrain_img_size'}):
        values = arch[key]
        one_each = isinstance(values, Sequence) and len(values) == NUM_STAGES
        if not one_each or not all(map(is_positive, values)):
            raise ValueError(f"arch['{key}'] is {values!r}: expected {NUM_STAGES} integers above 0")
    for kind in ('inner', 'outer'):
        for dim, heads in zip(arch[f'{kind}_dims'], arch[f'{kind}_heads'], strict=True):
            check_heads(kind, dim, heads)
    for depth, inner_depth in zip(arch['depths'], arch['inner_depths'], strict=True):
        if not 1 <= inner_depth <= depth:
            raise ValueError(
                f'arch: {inner_depth} blocks with an inner transformer in a stage of {depth}; '
                'expected at least 1 and at most all'
            )
