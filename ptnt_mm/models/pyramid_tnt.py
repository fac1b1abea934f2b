"""PyramidTNT (arXiv 2201.00978) for dense prediction: its variants, its parts, the network."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor, nn

from ptnt_mm.models.attention import ATTENTIONS
from ptnt_mm.models.backbone import (
    Backbone,
    FeatureInfo,
    check_heads,
    check_indices,
    check_pretrain_img_size,
    check_rates,
    choose,
    choose_position,
    drop_path_rates,
    init_linear_,
    position_of,
    read_arch,
)
from ptnt_mm.models.blocks import (
    NarrowNorm,
    NestedBlock,
    OuterBlock,
    conv_norm_relu,
    is_batch_norm,
)
from ptnt_mm.models.kernels.memory import transforms_active
from ptnt_mm.models.position_tables import (
    RELATIVE_POSITIONS,
    GridRelativePosition,
    OffsetTable,
    RelativePosition,
)
from ptnt_mm.models.positions import POSITIONS
from ptnt_mm.models.stages import Stage
from ptnt_mm.models.tokens import (
    PATCH,
    WORD_SIDE,
    WORDS,
    Grid,
    area,
    crop,
    map_to_tokens,
    map_to_words,
    reduced,
    tokens_to_map,
    words_to_quads,
)
from ptnt_mm.registry import MODELS
from ptnt_mm.utils.numbers import is_integer
from ptnt_mm.weights.names import Weights

NUM_STAGES = 4

ARCHS = {
    'tiny': dict(
        alias='ti',
        depths=(2, 6, 3, 2),
        inner_depths=(1, 1, 1, 1),
        outer_dims=(80, 160, 320, 320),
        inner_dims=(5, 10, 20, 20),
        outer_heads=(2, 4, 8, 8),
        inner_heads=(1, 2, 4, 4),
        pretrain_img_size=192,
    ),
    'small': dict(
        alias='s',
        depths=(2, 8, 4, 2),
        inner_depths=(1, 2, 1, 1),
        outer_dims=(128, 256, 512, 512),
        inner_dims=(8, 16, 32, 32),
        outer_heads=(4, 8, 16, 16),
        inner_heads=(2, 4, 8, 8),
        pretrain_img_size=256,
    ),
    'medium': dict(
        alias='m',
        depths=(2, 8, 6, 2),
        inner_depths=(1, 2, 1, 1),
        outer_dims=(192, 384, 768, 768),
        inner_dims=(12, 24, 48, 48),
        outer_heads=(4, 8, 16, 16),
        inner_heads=(2, 4, 8, 8),
        pretrain_img_size=256,
    ),
    'base': dict(
        alias='b',
        depths=(2, 10, 6, 2),
        inner_depths=(1, 2, 1, 1),
        outer_dims=(256, 512, 1024, 1024),
        inner_dims=(16, 32, 64, 64),
        outer_heads=(4, 8, 16, 16),
        inner_heads=(2, 4, 8, 8),
        pretrain_img_size=256,
    ),
}
"""PyramidTNT (arXiv 2201.00978, table 1, and the authors' code). Tuples hold one value per stage.

``inner_depths`` is the number of blocks, counted from the stage's first, that have an inner
transformer. ``pretrain_img_size`` is the side length, in pixels, of the pretraining images; the
position tables are stored for that size.
"""

SR_RATIOS = (4, 2, 1, 1)
"""Side length, in tokens, of the windows over which each stage averages its outer keys."""


class Stem(nn.Module):
    """Cut an image into outer tokens of 8 x 8 pixels and their 4 x 4 inner tokens.

    Two stacks of 3 x 3 convolutions over a shared first one (arXiv 2201.00978, "Convolutional
    Stem").

    Args:
        inner_dim: Channels of an inner token.
        outer_dim: Channels of an outer token.
        norm_cfg: Normalisation after every convolution, see :func:`build_norm`.
        with_words: Whether to compute the inner tokens, which some block needs.
    """

    def __init__(self, inner_dim: int, outer_dim: int, norm_cfg: dict, with_words: bool = True):
        super().__init__()
        self.common_conv = nn.Sequential(*conv_norm_relu(3, inner_dim * 2, 2, norm_cfg))
        self.inner_convs = None
        if with_words:
            layers = conv_norm_relu(inner_dim * 2, inner_dim, 1, norm_cfg)
            self.inner_convs = nn.Sequential(*layers)
        self.outer_convs = nn.Sequential(
            *conv_norm_relu(inner_dim * 2, inner_dim * 4, 2, norm_cfg),
            *conv_norm_relu(inner_dim * 4, inner_dim * 8, 2, norm_cfg),
            *conv_norm_relu(inner_dim * 8, outer_dim, 1, norm_cfg),
        )

    def forward(self, image: Tensor) -> tuple[Tensor | None, Tensor, Grid]:
        """(B, 3, H, W) -> inner (B*N, 16, c) or None, outer (B, N, C), hw (H/8, W/8).

        ``H`` and ``W``, in pixels, are multiples of 8.
        """
        h, w = hw = reduced(image.shape[2:], PATCH)
        if not transforms_active():  # vmap knows no order of memory
            image = image.contiguous(memory_format=torch.channels_last)
        common = crop(self.common_conv(image), (4 * h, 4 * w))
        outer = map_to_tokens(crop(self.outer_convs(common), hw))
        if self.inner_convs is None:
            return None, outer, hw
        return map_to_words(crop(self.inner_convs(common), (4 * h, 4 * w))), outer, hw


class PatchStem(nn.Module):
    """TNT's stem at the strides of PyramidTNT, without a convolution across patches.

    A convolution within each patch makes its words, and a linear layer their sentence (arXiv
    2103.00112, section 2.1). For the comparison with the convolutional stem; no published weights
    have it.

    Args:
        inner_dim: Channels of an inner token.
        outer_dim: Channels of an outer token.
        norm_cfg: PyramidTNT's default: norms are LayerNorms.
        with_words: No effect: sentences are made of words.

    Raises:
        ValueError: for another ``norm_cfg``.
    """

    def __init__(self, inner_dim: int, outer_dim: int, norm_cfg: dict, with_words: bool = True):
        super().__init__()
        if norm_cfg != dict(type='BN'):
            raise ValueError(
                f"norm_cfg is {norm_cfg!r}: stem='patch' has only LayerNorms, so omit it"
            )
        self.words = nn.Conv2d(3, inner_dim, 7, stride=PATCH // WORD_SIDE, padding=3)
        self.norm1 = nn.LayerNorm(WORDS * inner_dim)
        self.proj = nn.Linear(WORDS * inner_dim, outer_dim)
        self.norm2 = nn.LayerNorm(outer_dim)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Grid]:
        """(B, 3, H, W) -> inner (B*N, 16, c), outer (B, N, C), hw (H/8, W/8)."""
        patches = tokens_to_map(map_to_words(image, PATCH), (PATCH, PATCH))
        inner = map_to_tokens(self.words(patches))
        outer = self.norm2(self.proj(self.norm1(inner.flatten(1))))
        hw = reduced(image.shape[2:], PATCH)
        return inner, outer.unflatten(0, (len(image), area(hw))), hw


STEMS = {'conv': Stem, 'patch': PatchStem}
"""Values of the option ``stem``."""


class SentenceAggregation(nn.Module):
    """Halve the grid of the outer tokens, rounding up (arXiv 2201.00978, "Pyramid Architecture").

    Args:
        in_dim: Channels of an outer token before.
        out_dim: Channels of an outer token after.
    """

    def __init__(self, in_dim: int, out_dim: int):
        super().__init__()
        self.norm = nn.LayerNorm(in_dim)
        self.conv = nn.Sequential(nn.Conv2d(in_dim, out_dim, 3, stride=2, padding=1))

    def forward(self, outer: Tensor, hw: Grid) -> tuple[Tensor, Grid]:
        """(B, h*w, C) -> (B, N', C') and the new grid (ceil(h/2), ceil(w/2)), in tokens."""
        merged_hw = reduced(hw, 2)
        merged = self.conv(tokens_to_map(self.norm(outer), hw))
        return map_to_tokens(crop(merged, merged_hw)), merged_hw


class WordAggregation(nn.Module):
    """Turn the 8 x 8 words of 2 x 2 sentences into the 4 x 4 words of one merged sentence.

    Args:
        in_dim: Channels of an inner token before.
        out_dim: Channels of an inner token after.
    """

    def __init__(self, in_dim: int, out_dim: int):
        super().__init__()
        self.norm = NarrowNorm(in_dim)
        self.conv = nn.Sequential(nn.Conv2d(in_dim, out_dim, 3, stride=2, padding=1))

    def forward(self, inner: Tensor, hw: Grid) -> Tensor:
        """(B*h*w, 16, c) -> (B*ceil(h/2)*ceil(w/2), 16, c'); ``hw`` in outer tokens.

        A grid with an odd side is padded at the bottom and right with zero words.
        """
        return map_to_tokens(self.conv(words_to_quads(self.norm(inner), hw)))


def _positions() -> list[str]:
    """The supported encodings; tables of offsets would need every sentence as a key."""
    return [
        name
        for name, cls in POSITIONS.items()
        if not issubclass(cls.relative_position, OffsetTable)
    ]


class OutputNorm(nn.LayerNorm):
    """Normalise the tokens of a map that a backbone returns (ours): no published file has it."""

    pretrained_may_lack = ('weight', 'bias')


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
            'flat' or 'none' (see ``position_tables.py``). Without such tables, 'flat' is refused.
        stem: 'conv' as published, or 'patch' as TNT has it, see :class:`PatchStem`.
        sr_ratios: For each stage, the side of the windows that outer keys are averaged over, in
            tokens; 1 is attention to every sentence.
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
            divide their width, ``sr_ratios`` that are not four integers, ``out_indices`` out of
            range or not increasing, or a ``pretrain_img_size`` that is not a multiple of 64.
    """

    archs = ARCHS
    arch_prefix = ''
    complete = dict(out_indices=(NUM_STAGES - 1,), out_norms=True)
    nested_block: type[NestedBlock] = NestedBlock
    """The kind of the blocks that have words."""

    width = 'outer_dims'
    roots = ('patch_embed', 'outer_pos', 'inner_pos', 'word_merges', 'sentence_merges', 'stages')
    patch = PATCH
    size_step = PATCH * 2 ** (NUM_STAGES - 1)
    parts = (
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
        stem: str = 'conv',
        sr_ratios: Sequence[int] = SR_RATIOS,
        attention: str = 'fused',
        mlp_ratio: float = 4,
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
        arch = read_arch(arch, self.archs)
        _check_arch(arch)
        _check_one_each('sr_ratios', sr_ratios)
        check_rates(
            drop_rate=drop_rate, attn_drop_rate=attn_drop_rate, drop_path_rate=drop_path_rate
        )
        self.out_indices = check_indices(
            'out_indices', out_indices, NUM_STAGES, 'stages', '(1, 2, 3)'
        )
        if pretrain_img_size is None:
            pretrain_img_size = arch['pretrain_img_size']
        self.pretrain_img_size = check_pretrain_img_size(pretrain_img_size, self.size_step)
        self.norm_eval = norm_eval
        strides = [PATCH * 2**i for i in range(NUM_STAGES)]
        self.feature_info = FeatureInfo('stages', arch['outer_dims'], strides, self.out_indices)

        inner_dims, outer_dims = arch['inner_dims'], arch['outer_dims']
        built = range(self.out_indices[-1] + 1)
        # Stages up to the last with an inner transformer have words; other words would have no use.
        nested_stages = max((i + 1 for i in built if arch['inner_depths'][i]), default=0)
        new_stem = choose('stem', stem, STEMS)
        self.patch_embed = new_stem(inner_dims[0], outer_dims[0], norm_cfg, nested_stages > 0)
        self.pretrain_hw = (self.pretrain_img_size // PATCH,) * 2
        new_position = choose_position('position', position, _positions())
        self.position = new_position(outer_dims[0], self.pretrain_hw)
        self.register_parameter('outer_pos', self.position.new_table())
        self.register_parameter('inner_pos', None)
        if nested_stages:
            self.inner_pos = nn.Parameter(torch.zeros(1, WORDS, inner_dims[0]))
        self.pos_drop = nn.Dropout(drop_rate)

        table_class = choose('relative_position', relative_position, RELATIVE_POSITIONS)
        own = self.position.relative_position
        if own is not GridRelativePosition:
            if table_class not in (GridRelativePosition, own):
                has = 'no' if own is RelativePosition else 'other'
                raise ValueError(
                    f'relative_position is {relative_position!r}, but position={position!r} has '
                    f'{has} positions between pairs of tokens: omit it, or use '
                    "position='learned_and_relative' or position='relative'"
                )
            table_class = own
        drop_paths = drop_path_rates(drop_path_rate, arch['depths'])
        eager = choose('attention', attention, ATTENTIONS)
        self.word_merges = nn.ModuleList()
        self.sentence_merges = nn.ModuleList()
        self.stages = nn.ModuleList()
        for i in built:
            if 0 < i < nested_stages:
                self.word_merges.append(WordAggregation(inner_dims[i - 1], inner_dims[i]))
            if i > 0:
                self.sentence_merges.append(SentenceAggregation(outer_dims[i - 1], outer_dims[i]))
            options = dict(
                eager=eager,
                sr_ratio=sr_ratios[i],
                mlp_ratio=mlp_ratio,
                with_se=with_se,
                drop_rate=drop_rate,
                attn_drop_rate=attn_drop_rate,
            )
            inner_heads, outer_heads = arch['inner_heads'][i], arch['outer_heads'][i]
            nested = partial(
                self.nested_block,
                inner_dims[i],
                outer_dims[i],
                inner_heads,
                outer_heads,
                **options,
            )
            outer = partial(OuterBlock, outer_dims[i], outer_heads, **options)
            depth, inner_depth = arch['depths'][i], arch['inner_depths'][i]
            stage = Stage(
                [nested] * inner_depth + [outer] * (depth - inner_depth),
                drop_paths[i],
                pretrain_hw=tuple(side // 2**i for side in self.pretrain_hw),
                relative_position=table_class,
                pegs=self.position.new_pegs(outer_dims[i], depth),
                with_cp=with_cp,
            )
            self.stages.append(stage)
        self.out_norms = out_norms
        if out_norms:
            for i in self.out_indices:
                self.add_module(f'norm{i}', OutputNorm(outer_dims[i]))

        self._init_and_freeze()

    @staticmethod
    def init_layer(module: nn.Module) -> None:
        """Convolutions are drawn from N(0, 2 / fan out), those of a PEG too (ours)."""
        init_linear_(module)
        if isinstance(module, nn.Conv2d):
            fan_out = module.out_channels * math.prod(module.kernel_size) // module.groups
            nn.init.normal_(module.weight, std=math.sqrt(2 / fan_out))
            if module.bias is not None:
                nn.init.zeros_(module.bias)

    @property
    def is_complete(self) -> bool:
        """Whether its last output is that of stage 4, normalised."""
        return self.out_norms and super().is_complete

    @classmethod
    def options_of(cls, weights: Weights) -> dict[str, Any]:
        """The position encoding (the detector CFDT has no relative tables), SE and BatchNorm."""
        options = {}
        if any('.se_layer.' in key for key in weights):
            options['with_se'] = True
        position = position_of(weights, _positions())
        if position != 'learned_and_relative':
            options['position'] = position
        if not any(key.endswith('running_mean') for key in weights):
            # Any number of groups has the same weights.
            options['norm_cfg'] = dict(type='GN', num_groups=1)
        return options

    def forward_tokens(self, image: Tensor) -> list[tuple[Tensor | None, Tensor, Grid]]:
        """(B, 3, H, W) -> per output: inner (B*N, 16, c), outer (B, N, C), hw.

        Inner tokens are None after the last stage that has an inner transformer.

        Raises:
            ValueError: as :meth:`forward`.
        """
        inner, outer, hw = self.patch_embed(self._padded(image))
        # Under autocast the stem's tokens have the lower precision: float32 tables would turn the
        # first stage alone into float32.
        inner = None if self.inner_pos is None else inner + self.inner_pos.to(inner.dtype)
        encoding = self.position.encode(self.outer_pos, hw, like=outer)
        if encoding is not None:
            outer = outer + self.pos_drop(encoding).to(outer.dtype)
        outputs = []
        for i, stage in enumerate(self.stages):
            if i > 0:
                has_words = i <= len(self.word_merges)
                inner = self.word_merges[i - 1](inner, hw) if has_words else None
                outer, hw = self.sentence_merges[i - 1](outer, hw)
            inner, outer = stage(inner, outer, hw)
            if i in self.out_indices:
                outputs.append((inner, self._normed(i, outer), hw))
        return outputs

    def train(self, mode: bool = True) -> 'PyramidTNT':
        """Set the mode; frozen modules, and BatchNorm with ``norm_eval``, stay in evaluation."""
        super().train(mode)
        if self.norm_eval:
            for module in filter(is_batch_norm, self.modules()):
                module.eval()
        return self

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

    def _normed(self, i: int, outer: Tensor) -> Tensor:
        """The output of stage ``i``, normalised if outputs are."""
        return self.get_submodule(f'norm{i}')(outer) if self.out_norms else outer

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
    for key in sorted(arch.keys() - {'pretrain_img_size', 'inner_depths'}):
        _check_one_each(f"arch['{key}']", arch[key])
    _check_one_each("arch['inner_depths']", arch['inner_depths'], least=0)
    for kind in ('inner', 'outer'):
        for dim, heads in zip(arch[f'{kind}_dims'], arch[f'{kind}_heads'], strict=True):
            check_heads(kind, dim, heads)
    for depth, inner_depth in zip(arch['depths'], arch['inner_depths'], strict=True):
        if inner_depth > depth:
            raise ValueError(
                f'arch: {inner_depth} blocks with an inner transformer in a stage of {depth}; '
                'expected at most all'
            )


def _check_one_each(name: str, values: Any, least: int = 1) -> None:
    """Raise a ValueError unless there is an integer of at least ``least`` for each stage."""
    one_each = isinstance(values, Sequence) and len(values) == NUM_STAGES
    if not one_each or not all(is_integer(value) and value >= least for value in values):
        raise ValueError(
            f'{name} is {values!r}: expected {NUM_STAGES} integers of at least {least}'
        )
