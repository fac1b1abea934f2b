"""TNT (arXiv 2103.00112) for dense prediction: its variants, its stems, the network."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor, nn

from ptnt_mm.models.attention import ATTENTIONS
from ptnt_mm.models.backbone import (
    check_heads,
    check_indices,
    check_rates,
    choose,
    choose_position,
    read_arch,
)
from ptnt_mm.models.blocks import (
    NestedBlock,
    OuterBlock,
    WordNorm,
    conv_norm_relu,
    word_to_sentence,
)
from ptnt_mm.models.single_scale import SingleScaleBackbone
from ptnt_mm.models.tokens import (
    SINGLE_SCALE_PATCH,
    Grid,
    area,
    map_to_tokens,
    map_to_words,
    reduced,
    tokens_to_map,
)
from ptnt_mm.registry import MODELS
from ptnt_mm.weights.names import Weights

TNT_ARCHS = {
    'small': dict(
        alias='s',
        depth=12,
        outer_dim=384,
        inner_dim=24,
        outer_heads=6,
        inner_heads=4,
        words=16,
    ),
    'base': dict(
        alias='b',
        depth=12,
        outer_dim=640,
        inner_dim=40,
        outer_heads=10,
        inner_heads=4,
        words=16,
    ),
}
"""TNT (arXiv 2103.00112, table 1). ``words`` is the number of inner tokens of an outer one."""

LEGACY_TNT_ARCHS = {'small': TNT_ARCHS['small']}
"""The variant of timm's first TNT, see :class:`LegacyTNT`."""


class WordStem(nn.Module):
    """The stem of TNT: the words of each patch, by a convolution within the patch.

    Args:
        dim: Channels of an inner token.
        word_side: Inner tokens along one side of a patch.
    """

    def __init__(self, dim: int, word_side: int):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, 7, stride=SINGLE_SCALE_PATCH // word_side, padding=3)

    def forward(self, image: Tensor) -> tuple[Tensor, Grid]:
        """(B, 3, H, W) -> inner (B*N, m, c), hw (H/16, W/16); sides are multiples of 16."""
        side = SINGLE_SCALE_PATCH
        patches = tokens_to_map(map_to_words(image, side), (side, side))
        return map_to_tokens(self.proj(patches)), reduced(image.shape[2:], side)


class ConvWordStem(nn.Module):
    """PyramidTNT's convolutional stem at TNT's strides: 3 x 3 convolutions, BatchNorm and ReLU.

    Sentences are the projection of their words, as in TNT. For the comparison of the two stems; no
    published weights have it.

    Args:
        dim: Channels of an inner token.
        word_side: Inner tokens along one side of a patch.
    """

    def __init__(self, dim: int, word_side: int):
        super().__init__()
        self.word_side = word_side
        halvings = (SINGLE_SCALE_PATCH // word_side).bit_length() - 1
        strides = [2] * halvings + [1]
        widths = [3] + [2 * dim] * halvings + [dim]
        layers = zip(widths, widths[1:], strides, strict=False)
        self.convs = nn.Sequential(
            *(layer for each in layers for layer in conv_norm_relu(*each, dict(type='BN')))
        )

    def forward(self, image: Tensor) -> tuple[Tensor, Grid]:
        """(B, 3, H, W) -> inner (B*N, m, c), hw (H/16, W/16); sides are multiples of 16."""
        words = map_to_words(self.convs(image), self.word_side)
        return words, reduced(image.shape[2:], SINGLE_SCALE_PATCH)


class LegacyWordStem(WordStem):
    """The stem of :class:`LegacyTNT`: its convolution sees the pixels beyond a patch's border."""

    def forward(self, image: Tensor) -> tuple[Tensor, Grid]:
        """(B, 3, H, W) -> inner (B*N, m, c), hw (H/16, W/16); sides are multiples of 16."""
        words = map_to_words(self.proj(image), SINGLE_SCALE_PATCH // self.proj.stride[0])
        return words, reduced(image.shape[2:], SINGLE_SCALE_PATCH)


@MODELS.register_module()
class TNT(SingleScaleBackbone):
    """Transformer in Transformer: words inside sentences of 16 x 16 pixels, and a class token.

    Takes images of any size from 16 x 16 pixels. Sides that are not a multiple of 16 are padded at
    the bottom and right with zeros, the mean colour of normalised images.

    Parameters are named as in the authors' checkpoints, except for the projections of attention,
    which are named as in PyramidTNT; ``weights/names.py`` converts the authors' names and timm's.
    The weights expect RGB images normalised with mean and standard deviation 127.5.

    Args:
        arch: 'small' or 's', 'base' or 'b', or a dict with the keys of a row of ``TNT_ARCHS``.
        out_indices: The blocks whose maps are returned, increasing; negative ones count from the
            last, whose map is the output of the final LayerNorm.
        pretrain_img_size: Side in pixels, a multiple of 16, that the sentence table belongs to.
        position: Position encoding of sentences: 'learned' as published, 'sinusoidal', 'peg',
            'relative_2d', 'relative_shaw' or 'none'. A dict with the name as ``type`` can also set
            options (see ``positions.py``).
        word_position: The same for the words inside a sentence: 'learned', 'sinusoidal', 'none'.
        stem: 'patch' as published, or 'conv', see :class:`ConvWordStem`.
        inner_blocks: The blocks that have an inner transformer, from 0; all by default. None of
            them, ``()``, is a plain transformer on TNT's stem.
        attention: 'fused', or 'eager', which stores every logit.
        mlp_ratio: Hidden width of an MLP as a multiple of the token's width.
        with_se: Whether outer MLPs have squeeze and excitation (+0.3 top-1 in the paper).
        drop_rate: Dropout of MLPs, of the attention's projection and after the sentence table.
        attn_drop_rate: Dropout of attention weights.
        drop_path_rate: Rate of dropping a residual branch in the last block; it rises linearly
            from 0 in the first.
        out_type: 'featmap', or 'cls_token' for mmpretrain's classifiers.
        frozen_stages: -1 freezes nothing, 0 the stem with its tables and class token, k the first
            k blocks too.
        with_cp: Recompute blocks in the backward pass: less memory, more time.
        init_cfg: ``dict(type='Pretrained', checkpoint=...)`` loads weights, or raises.

    Raises:
        ValueError: for an unknown arch, wrong keys of an arch dict, heads that do not divide their
            width, words that do not tile a patch, ``inner_blocks`` or ``out_indices`` out of range
            or not increasing, a ``pretrain_img_size`` that is not a multiple of 16.
    """

    archs = TNT_ARCHS
    arch_prefix = 'tnt_'
    width = 'outer_dim'
    roots = (
        'patch_embed', 'outer_pos', 'inner_pos', 'cls_token', 'proj', 'proj_norm1', 'proj_norm2',
        'blocks', 'peg', 'relative_pos',
    )  # fmt: skip
    stem = WordStem
    new_projection = staticmethod(word_to_sentence)

    def __init__(
        self,
        arch: str | dict,
        out_indices: Sequence[int] = (-1,),
        pretrain_img_size: int = 224,
        position: str | dict = 'learned',
        word_position: str = 'learned',
        stem: str = 'patch',
        inner_blocks: Sequence[int] | None = None,
        attention: str = 'fused',
        mlp_ratio: float = 4,
        with_se: bool = False,
        drop_rate: float = 0.0,
        attn_drop_rate: float = 0.0,
        drop_path_rate: float = 0.1,
        out_type: str = 'featmap',
        frozen_stages: int = -1,
        with_cp: bool = False,
        init_cfg: dict | None = None,
    ):
        arch = read_arch(arch, self.archs)
        check_rates(
            drop_rate=drop_rate, attn_drop_rate=attn_drop_rate, drop_path_rate=drop_path_rate
        )
        super().__init__(
            arch,
            dim=arch['outer_dim'],
            class_tokens=1,
            out_indices=out_indices,
            pretrain_img_size=pretrain_img_size,
            out_type=out_type,
            frozen_stages=frozen_stages,
            with_cp=with_cp,
            init_cfg=init_cfg,
        )
        inner_dim, outer_dim, words = arch['inner_dim'], arch['outer_dim'], arch['words']
        for kind in ('inner', 'outer'):
            check_heads(kind, arch[f'{kind}_dim'], arch[f'{kind}_heads'])
        word_hw = (_word_side(words),) * 2

        stems = dict(patch=self.stem, conv=ConvWordStem)
        self.patch_embed = choose('stem', stem, stems)(inner_dim, word_hw[0])
        new_word_position = choose_position(
            'word_position', word_position, ('learned', 'sinusoidal', 'none')
        )
        self.word_position = new_word_position(inner_dim, word_hw)
        self.register_parameter('inner_pos', self.word_position.new_table())
        self.proj_norm1 = nn.LayerNorm(words * inner_dim)
        self.proj = nn.Linear(words * inner_dim, outer_dim)
        self.proj_norm2 = nn.LayerNorm(outer_dim)
        shared = dict(
            eager=choose('attention', attention, ATTENTIONS),
            mlp_ratio=mlp_ratio,
            with_se=with_se,
            drop_rate=drop_rate,
            attn_drop_rate=attn_drop_rate,
        )
        plain = partial(OuterBlock, outer_dim, arch['outer_heads'], **shared)
        nested = partial(
            NestedBlock,
            inner_dim,
            outer_dim,
            arch['inner_heads'],
            arch['outer_heads'],
            words=words,
            word_norm=WordNorm,
            new_projection=self.new_projection,
            class_tokens=self.class_tokens,
            **shared,
        )
        nested_blocks = range(self.depth) if inner_blocks is None else inner_blocks
        if nested_blocks:
            nested_blocks = check_indices(
                'inner_blocks', nested_blocks, self.depth, 'blocks', '(0, 5)'
            )
        new_blocks = [nested if i in nested_blocks else plain for i in range(self.depth)]
        self._build_blocks(new_blocks, position, drop_rate, drop_path_rate)

    @classmethod
    def options_of(cls, weights: Weights) -> dict[str, Any]:
        """The position encoding, and whether there is squeeze and excitation."""
        options = super().options_of(weights)
        if any('.se_layer.' in key for key in weights):
            options['with_se'] = True
        return options

    def embed(self, image: Tensor) -> tuple[Tensor, Tensor, Grid]:
        """(B, 3, H, W) -> inner (B*N, m, c), outer (B, N, C), hw (H/16, W/16)."""
        inner, hw = self.patch_embed(image)
        encoding = self.word_position.encode(self.inner_pos, self.word_position.hw, like=inner)
        if encoding is not None:
            inner = inner + encoding.to(inner.dtype)
        outer = self.proj_norm2(self.proj(self.proj_norm1(inner.flatten(1))))
        return inner, outer.unflatten(0, (image.shape[0], area(hw))), hw


def _legacy_word_to_sentence(words: int, inner_dim: int, outer_dim: int) -> tuple[nn.Module, ...]:
    """As :func:`word_to_sentence`, but with a norm for each word, a bias, no second norm."""
    return WordNorm(words, inner_dim), nn.Linear(words * inner_dim, outer_dim), nn.Identity()


@MODELS.register_module()
class LegacyTNT(TNT):
    """TNT as timm wrote it before the authors published their code; mmpretrain's weights fit it.

    It differs from :class:`TNT` in the stem, whose convolution sees the pixels beyond the border of
    a patch, and in the blocks: each word is normalised by itself before it is added to its
    sentence, the projection has a bias, and there is no norm after it. Arch and options are the
    same; only 'small' was published.
    """

    archs = LEGACY_TNT_ARCHS
    arch_prefix = 'tnt_legacy_'
    stem = LegacyWordStem
    new_projection = staticmethod(_legacy_word_to_sentence)


def _word_side(words: int) -> int:
    """Words along one side of a patch."""
    side = math.isqrt(words)
    if side * side != words or SINGLE_SCALE_PATCH % side:
        raise ValueError(
            f"arch['words'] is {words}: expected 4, 16 or 64, a square whose side divides the "
            f'{SINGLE_SCALE_PATCH} pixels of a patch'
        )
    return side
