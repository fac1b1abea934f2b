"""What is compared: backbones of this and other packages, and whole detectors with them."""

from collections.abc import Callable
from functools import partial

from torch import Tensor, nn

from benchmark.detectors import CONFIGS, DetectorLosses
from ptnt_mm.models import CPVT, TNT, PyramidTNT
from ptnt_mm.utils.errors import UserError
from ptnt_mm.utils.text import unknown_name
from ptnt_mm.workbench.config.hosts import import_host

COMPILED, REDUCED = '+compile', '+reduce_overhead'
"""Run the model with torch.compile; in its mode 'reduce-overhead', as CUDA graphs."""

CHANNELS_LAST = '+channels_last'
"""Weights and images in that order."""

OPTIMIZERS = {'+foreach': dict(foreach=True), '+fused': dict(fused=True)}
"""A training step includes AdamW, with these settings."""

WAYS = (COMPILED, REDUCED, CHANNELS_LAST, *OPTIMIZERS)
"""Suffixes of a name, in any number."""


def ways_of(name: str) -> set[str]:
    """The suffixes of a name."""
    return {f'+{way}' for way in name.split('+')[1:]}


def without_way(name: str) -> str:
    """The name of the model, without suffixes."""
    return name.partition('+')[0]


def _peer(name: str, **options) -> nn.Module:
    """Build a backbone of mmdet, which needs mmcv's operators to be importable."""
    import_host('mmdet.models')
    from mmdet.models import backbones

    return getattr(backbones, name)(**options)


class OneForEachSize(nn.Module):
    """A backbone whose class supports one image size: one is built for each size in use.

    Args:
        build: Takes height and width in pixels.
    """

    def __init__(self, build: Callable[[tuple[int, int]], nn.Module]):
        super().__init__()
        self.build = build
        self.models = nn.ModuleDict()

    def forward(self, image: Tensor) -> Tensor | tuple[Tensor, ...]:
        """Images (B, 3, H, W) -> whatever the backbone returns."""
        height, width = image.shape[2:]
        name = f'{height}x{width}'
        if name not in self.models:
            self.models[name] = self.build((height, width)).to(image.device)
            # mmpretrain's method returns None.
            self.models[name].train(self.training)
        return self.models[name](image)


def _timms_tnt(size: tuple[int, int]) -> nn.Module:
    from timm import create_model

    return create_model('tnt_s_patch16_224', img_size=size, num_classes=0)


def _mmpretrains_tnt(size: tuple[int, int]) -> nn.Module:
    import_host('mmpretrain.models')
    from mmpretrain.models import TNT as Theirs  # noqa: N811

    return Theirs('s', img_size=size)


_SIZES = dict(ti='tiny', s='small', m='medium', b='base')
_FORMS = {'': {}, '_eager': dict(attention='eager'), '_cp': dict(with_cp=True)}
_FAMILY = dict(ptnt_s_peg=partial(PyramidTNT, position='peg'), tnt_s=TNT, cpvt_s=CPVT)
_SWIN = dict(embed_dims=96, depths=(2, 2, 6, 2), num_heads=(3, 6, 12, 24), window_size=7)
_PVT_V2 = dict(embed_dims=64, num_heads=(1, 2, 5, 8))

BUILDERS: dict[str, Callable[[], nn.Module]] = {
    **{
        f'ptnt_{size}{form}': partial(PyramidTNT, arch, **options)
        for size, arch in _SIZES.items()
        for form, options in _FORMS.items()
    },
    **{
        f'{name}{form}': partial(build, 'small', **options)
        for name, build in _FAMILY.items()
        for form, options in _FORMS.items()
    },
    'tnt_s_timm': partial(OneForEachSize, _timms_tnt),
    'tnt_s_mmpretrain': partial(OneForEachSize, _mmpretrains_tnt),
    'swin_t': partial(_peer, 'SwinTransformer', drop_path_rate=0.2, **_SWIN),
    'pvt_v2_b1': partial(_peer, 'PyramidVisionTransformerV2', num_layers=(2, 2, 2, 2), **_PVT_V2),
    'pvt_v2_b2': partial(_peer, 'PyramidVisionTransformerV2', num_layers=(3, 4, 6, 3), **_PVT_V2),
    'resnet50': partial(_peer, 'ResNet', depth=50),
    **{name: partial(DetectorLosses, config) for name, config in CONFIGS.items()},
}
"""All contenders, without suffixes."""


def check_name(name: str) -> None:
    """Raise a UserError that suggests the closest name if there is no such contender."""
    if without_way(name) not in BUILDERS:
        raise UserError(unknown_name('model', name, BUILDERS))
    for way in ways_of(name).difference(WAYS):
        raise UserError(unknown_name('way', way, WAYS))


def build_contender(name: str) -> nn.Module:
    """Build a contender with random weights, whatever its suffix.

    Raises:
        UserError: if mmdet is needed and cannot be imported.
    """
    return BUILDERS[without_way(name)]()


def counted_as(name: str) -> str:
    """Return the contender with the same multiply-adds that is counted."""
    name = without_way(name)
    for form in ('_cp', '_eager', '_timm', '_mmpretrain'):
        name = name.removesuffix(form)
    return name
