"""The backbones that are compared: ours in its forms, and the published competitors from mmdet."""

from collections.abc import Callable
from functools import partial

from torch import nn

from ptnt_mm.engine.build import import_host
from ptnt_mm.errors import UserError, unknown_name
from ptnt_mm.models import PyramidTNT

COMPILED = '+compile'
"""What a name ends in when torch.compile is to run the model."""

BASELINE = 'ptnt_s'
"""The contender that others are compared with."""


def _peer(name: str, **options) -> nn.Module:
    """Build one of mmdet's backbones; they need mmcv's compiled operators to be imported."""
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


def names() -> list[str]:
    """What can be compared, without the compiled forms."""
    return list(_BUILDERS)


def check_name(name: str) -> str:
    """Give the name back, or raise a UserError that offers the nearest."""
    if name.removesuffix(COMPILED) not in _BUILDERS:
        raise UserError(unknown_name('model', name, _BUILDERS))
    return name


def build(name: str) -> nn.Module:
    """Build a contender with random weights, uncompiled.

    Raises:
        UserError: for an unknown name, or a peer where mmdet cannot be imported.
    """
    return _BUILDERS[check_name(name).removesuffix(COMPILED)]()


def counted_as(name: str) -> str:
    """The contender whose multiply-adds are this one's: of ours, the published form for all."""
    plain = check_name(name).removesuffix(COMPILED).removesuffix('_cp')
    eager = f'{plain}_eager'
    return eager if eager in _BUILDERS else plain
