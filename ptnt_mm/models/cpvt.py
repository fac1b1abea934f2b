"""CPVT (arXiv 2102.10882) for dense prediction: its variants, its stem, the network."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor, nn

from ptnt_mm.models.attention import ATTENTIONS
from ptnt_mm.models.backbone import check_heads, check_rates, choose, read_arch
from ptnt_mm.models.blocks import OuterBlock
from ptnt_mm.models.pegs import PEG
from ptnt_mm.models.single_scale import SingleScaleBackbone
from ptnt_mm.models.tokens import SINGLE_SCALE_PATCH, Grid, map_to_tokens, reduced
from ptnt_mm.registry import MODELS
from ptnt_mm.weights.names import Weights

CPVT_ARCHS = {
    'tiny': dict(alias='ti', depth=12, dim=192, heads=3),
    'small': dict(alias='s', depth=12, dim=384, heads=6),
    'base': dict(alias='b', depth=12, dim=768, heads=12),
}
"""CPVT (arXiv 2102.10882, table 1), the widths of DeiT. Its authors published no weights."""


class PatchEmbed(nn.Module):
    """The stem of a Vision Transformer: a linear map of each patch (arXiv 2010.11929).

    Args:
        dim: Channels of a token.
    """

    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, SINGLE_SCALE_PATCH, stride=SINGLE_SCALE_PATCH)

    def forward(self, image: Tensor) -> tuple[Tensor, Grid]:
        """(B, 3, H, W) -> outer (B, N, C), hw (H/16, W/16); sides are multiples of 16."""
        return map_to_tokens(self.proj(image)), reduced(image.shape[2:], SINGLE_SCALE_PATCH)


@MODELS.register_module()
class CPVT(SingleScaleBackbone):
    """A Vision Transformer whose positions come from its content, by a PEG after the first block.

    Takes images of any size from 16 x 16 pixels, with one set of weights and no tables to resize.
    Sides that are not a multiple of 16 are padded at the bottom and right with zeros, the mean
    colour of normalised images.

    Args:
        arch: 'tiny', 'small', 'base', their aliases 'ti', 's', 'b', or a dict with the keys of a
            row of ``CPVT_ARCHS``.
        out_indices: The blocks whose maps are returned, increasing; negative ones count from the
            last, whose map is the output of the final LayerNorm.
        pretrain_img_size: Side in pixels, a multiple of 16, that a position table would belong to.
        position: Position encoding: 'peg' as published, 'learned' (as DeiT), 'sinusoidal',
            'relative_2d', 'relative_shaw' or 'none'. A dict with the name as ``type`` can also set
            options: for a PEG ``blocks``, the blocks that it follows (-1 for the input; (0,) by
            default), ``kernel_size``, ``padding_mode``, ``kind`` and ``frozen`` (see
            :class:`PEG`).
        with_cls_token: Whether there is a class token; without one, a classifier averages tokens.
        attention: 'fused', or 'eager', which stores every logit.
        mlp_ratio: Hidden width of the MLPs as a multiple of the token's width.
        drop_rate: Dropout of MLPs, of the attention's projection and after the position encoding.
        attn_drop_rate: Dropout of attention weights.
        drop_path_rate: Rate of dropping a residual branch in the last block; it rises linearly
            from 0 in the first.
        out_type: 'featmap', or 'cls_token' for mmpretrain's classifiers.
        frozen_stages: -1 freezes nothing, 0 the stem with its class token, k the first k blocks
            too, with the PEGs after them.
        with_cp: Recompute blocks in the backward pass: less memory, more time.
        init_cfg: ``dict(type='Pretrained', checkpoint=...)`` loads weights, or raises.

    Raises:
        ValueError: for an unknown arch, wrong keys of an arch dict, heads that do not divide their
            width, ``out_indices`` out of range or not increasing, PEGs after blocks that
            do not exist.
    """

    archs = CPVT_ARCHS
    arch_prefix = 'cpvt_'
    width = 'dim'
    roots = ('patch_embed', 'outer_pos', 'cls_token', 'blocks', 'peg', 'relative_pos')

    def __init__(
        self,
        arch: str | dict,
        out_indices: Sequence[int] = (-1,),
        pretrain_img_size: int = 224,
        position: str | dict = 'peg',
        with_cls_token: bool = True,
        attention: str = 'fused',
        mlp_ratio: float = 4,
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
            dim=arch['dim'],
            class_tokens=int(with_cls_token),
            out_indices=out_indices,
            pretrain_img_size=pretrain_img_size,
            out_type=out_type,
            frozen_stages=frozen_stages,
            with_cp=with_cp,
            init_cfg=init_cfg,
        )
        check_heads('outer', arch['dim'], arch['heads'])
        self.patch_embed = PatchEmbed(arch['dim'])
        new_block = partial(
            OuterBlock,
            arch['dim'],
            arch['heads'],
            eager=choose('attention', attention, ATTENTIONS),
            qkv_bias=True,
            mlp_ratio=mlp_ratio,
            drop_rate=drop_rate,
            attn_drop_rate=attn_drop_rate,
        )
        self._build_blocks([new_block] * self.depth, position, drop_rate, drop_path_rate)
        for module in self.modules():
            if isinstance(module, PEG):
                module.pretrained_may_lack = ()  # published weights have it
            if isinstance(module, nn.LayerNorm):
                module.eps = 1e-6  # DeiT's, whose code CPVT extends

    @classmethod
    def options_of(cls, weights: Weights) -> dict[str, Any]:
        """The position encoding, and whether there is a class token."""
        options = super().options_of(weights)
        if 'cls_token' not in weights:
            options['with_cls_token'] = False
        return options

    def embed(self, image: Tensor) -> tuple[None, Tensor, Grid]:
        """(B, 3, H, W) -> None in place of words, outer (B, N, C), hw (H/16, W/16)."""
        return None, *self.patch_embed(image)
