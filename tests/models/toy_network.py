"""A network of the family outside the package: all that a new one has to declare."""

from collections.abc import Sequence
from functools import partial

from torch import Tensor, nn

from ptnt_mm.models.backbone import check_heads, read_arch
from ptnt_mm.models.blocks import OuterBlock
from ptnt_mm.models.single_scale import SingleScaleBackbone
from ptnt_mm.models.tokens import SINGLE_SCALE_PATCH, Grid, map_to_tokens, reduced

TOY_ARCHS = {
    'small': dict(alias='s', depth=2, dim=16, heads=2),
    'base': dict(alias='b', depth=3, dim=32, heads=4),
}


class ToyNetwork(SingleScaleBackbone):
    """A Vision Transformer after two convolutions."""

    archs = TOY_ARCHS
    arch_prefix = 'toy_'
    width = 'dim'
    roots = ('toy_stem', 'outer_pos', 'blocks')

    def __init__(
        self,
        arch: str | dict,
        out_indices: Sequence[int] = (-1,),
        pretrain_img_size: int = 64,
        out_type: str = 'featmap',
        frozen_stages: int = -1,
        init_cfg: dict | None = None,
    ):
        arch = read_arch(arch, self.archs)
        super().__init__(
            arch,
            dim=arch['dim'],
            class_tokens=0,
            out_indices=out_indices,
            pretrain_img_size=pretrain_img_size,
            out_type=out_type,
            frozen_stages=frozen_stages,
            with_cp=False,
            init_cfg=init_cfg,
        )
        check_heads('outer', arch['dim'], arch['heads'])
        self.toy_stem = nn.Sequential(
            nn.Conv2d(3, 8, 4, stride=4), nn.GELU(), nn.Conv2d(8, arch['dim'], 4, stride=4)
        )
        new_block = partial(OuterBlock, arch['dim'], arch['heads'])
        self._build_blocks([new_block] * self.depth, 'learned', 0.0, 0.0)

    def embed(self, image: Tensor) -> tuple[None, Tensor, Grid]:
        """(B, 3, H, W) -> None in place of words, outer (B, N, C), hw (H/16, W/16)."""
        hw = reduced(image.shape[2:], SINGLE_SCALE_PATCH)
        return None, map_to_tokens(self.toy_stem(image)), hw
