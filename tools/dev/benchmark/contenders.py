"""The backbones to compare: the forms of PyramidTNT, and published backbones from mmdet."""

from collections.abc import Callable
from functools import partial

from torch import nn

from ptnt_mm.engine.hosts import import_host
from ptnt_mm.models import PyramidTNT
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name

COMPILED = '+compile'
"""Suffix of a name: run the model with torch.compile."""

BASELINE = 'ptnt_s'
"""The contender that ratios refer to."""


def _peer(name: str, **options) -> nn.Module:
    """Build a backbone of mmdet, which needs mmcv's operators to be importable."""
    import_host('mmdet.models')
    from mmdet.models import backbones

    return getattr(backbones, name)(**options)


_SIZES = dict(ti='tiny', s='small', m='medium', b='base')
_FORMS = {'': {}, '_eager': dict(attention='eager'), '_cp': dict(with_cp=True)}
_SWIN = dict(embed_dims=96, depths=(2, 2, 6, 2), num_heads=(3, 6, 12, 24), window_size=7)
_PVT_V2 = dict(embed_dims=64, num_heads=(1, 2, 5, 8))

BUILDERS: dict[str, Callable[[], nn.Module]] = {
    **{
        f'ptnt_{size}{form}': partial(PyramidTNT, arch, **options)
        for size, arch in _SIZES.items()
        for form, options in _FORMS.items()
    },
    'swin_t': partial(_peer, 'SwinTransformer', drop_path_rate=0.2, **_SWIN),
    'pvt_v2_b1': partial(_peer, 'PyramidVisionTransformerV2', num_layers=(2, 2, 2, 2), **_PVT_V2),
    'pvt_v2_b2': partial(_peer, 'PyramidVisionTransformerV2', num_layers=(3, 4, 6, 3), **_PVT_V2),
    'resnet50': partial(_peer, 'ResNet', depth=50),
}
"""All contenders, without the compiled forms."""


def check_name(name: str) -> None:
    """Raise a UserError that suggests the closest name if there is no such contender."""
    if name.removesuffix(COMPILED) not in BUILDERS:
        raise UserError(unknown_name('model', name, BUILDERS))


def build_contender(name: str) -> nn.Module:
    """Build a contender with random weights, uncompiled.

    Raises:
        UserError: if mmdet is needed and cannot be imported.
    """
    return BUILDERS[name.removesuffix(COMPILED)]()


def counted_as(name: str) -> str:
    """Return the contender to count multiply-adds of; for PyramidTNT, its published form."""
    plain = name.removesuffix(COMPILED).removesuffix('_cp')
    eager = f'{plain}_eager'
    return eager if eager in BUILDERS else plain
