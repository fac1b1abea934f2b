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
    """Build a backbone of mmdet, which needs mmcv's compiled operators to be importable."""
    import_host('mmdet.models')
    from mmdet.models import backbones

    return getattr(backbones, name)(**options)


_PVT_V2 = dict(embed_dims=64, num_heads=(1, 2, 5, 8))

_BUILDERS: dict[str, Callable[[], nn.Module]] = {
    **{
        f'ptnt_{size}{form}': partial(PyramidTNT, arch, **options)
        for size, arch in dict(ti='tiny', s='small', m='medium', b='base').items()
        for form, options in {
            '': {},
            '_eager': dict(attention='eager'),
            '_cp': dict(with_cp=True),
        }.items()
    },
    'swin_t': partial(
        _peer,
        'SwinTransformer',
        embed_dims=96,
        depths=(2, 2, 6, 2),
        num_heads=(3, 6, 12, 24),
        window_size=7,
        drop_path_rate=0.2,
    ),
    'pvt_v2_b1': partial(_peer, 'PyramidVisionTransformerV2', num_layers=(2, 2, 2, 2), **_PVT_V2),
    'pvt_v2_b2': partial(_peer, 'PyramidVisionTransformerV2', num_layers=(3, 4, 6, 3), **_PVT_V2),
    'resnet50': partial(_peer, 'ResNet', depth=50),
}


def contender_names() -> list[str]:
    """List all contenders, without the compiled forms."""
    return list(_BUILDERS)


def check_name(name: str) -> str:
    """Return the name, or raise a UserError that suggests the closest one."""
    if name.removesuffix(COMPILED) not in _BUILDERS:
        raise UserError(unknown_name('model', name, _BUILDERS))
    return name


def build_contender(name: str) -> nn.Module:
    """Build a contender with random weights, uncompiled.

    Raises:
        UserError: if the name is unknown, or mmdet is needed and cannot be imported.
    """
    return _BUILDERS[check_name(name).removesuffix(COMPILED)]()


def counted_as(name: str) -> str:
    """Return the contender to count multiply-adds of; for PyramidTNT, its published form."""
    plain = check_name(name).removesuffix(COMPILED).removesuffix('_cp')
    eager = f'{plain}_eager'
    return eager if eager in _BUILDERS else plain
