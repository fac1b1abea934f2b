"""The variants as data: PyramidTNT's, TNT's and CPVT's, each from its paper.

A row holds the settings of the backbone and the keys in :data:`NOT_BUILT`: ``alias``, the variant's
short name in config names, and ``published``, its published weights, the authors' first.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

GREY = (127.5, 127.5, 127.5)


class Published(NamedTuple):
    """A file of weights from ImageNet-1k, as its publisher describes it.

    docs/checkpoints.md names the source of each entry.
    """

    name: str
    """For ``--pretrained``."""

    top_1: float
    """Percent."""

    megabytes: int | None = None
    """Parameters of the classifier times 4 bytes; no publisher states a size."""

    url: str | None = None
    """Address of the file, or of a page that a browser has to open; None if none was published."""

    password: str | None = None
    """Password of the page; None for the address of a file."""

    sha256: str | None = None
    """The first digits, at least 8; None if none were published."""

    licence: str = 'Apache-2.0'
    """Licence of the repository that publishes the file."""

    mean: tuple[float, float, float] = GREY
    """Subtracted from RGB values in [0, 255] before the images enter the network."""

    std: tuple[float, float, float] = GREY
    """Divisor of the values after the subtraction."""

    @property
    def address(self) -> str | None:
        """Address to download from, with the known digits of the hash; None if there is none."""
        if self.url is None or self.password is not None:
            return None
        return self.url + (f'#sha256={self.sha256}' if self.sha256 else '')


NOT_BUILT = ('alias', 'published')
"""Keys of a row that describe the variant and are not settings of the backbone."""

_TNT_RELEASE = 'https://github.com/huawei-noah/Efficient-AI-Backbones/releases/download/tnt'
_TIMM_RELEASE = 'https://github.com/contrastive/pytorch-image-models/releases/download/TNT'
_BAIDU = 'https://pan.baidu.com/s'
_TIMM = 'https://huggingface.co/timm'
_TIMM_FILE = 'resolve/main/model.safetensors'
_OPENMMLAB = 'https://download.openmmlab.com/mmclassification/v0'

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
        published=(Published('ptnt_ti', 75.2, 42, f'{_BAIDU}/1xm3DSGcAJbvFQm4jmDAlnQ', '0r5t'),),
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
        published=(Published('ptnt_s', 82.0, 128, f'{_BAIDU}/1xha8x3DTlPq9-KeC6EPPow', 'v5w5'),),
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
        published=(Published('ptnt_m', 83.5, 340, f'{_BAIDU}/1B9zkWkrUAETuiyr08ClY-w', 'jqm3'),),
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
        published=(Published('ptnt_b', 84.1, 628, f'{_BAIDU}/1tT0mxRrZQx6facYsdPBt0g', 'ns4t'),),
    ),
}
"""PyramidTNT (arXiv 2201.00978, table 1, and the authors' code). Tuples hold one value per stage.

``inner_depths`` is the number of blocks, counted from the stage's first, that have an inner
transformer. ``pretrain_img_size`` is the side length, in pixels, of the pretraining images; the
position tables are stored for that size.
"""

SR_RATIOS = (4, 2, 1, 1)
"""Side length, in tokens, of the windows over which each stage averages its outer keys."""

TNT_ARCHS = {
    'small': dict(
        alias='s',
        depth=12,
        outer_dim=384,
        inner_dim=24,
        outer_heads=6,
        inner_heads=4,
        words=16,
        published=(
            Published('tnt_s', 81.5, 95, f'{_TNT_RELEASE}/tnt_s_81.5.pth.tar'),
            Published('tnt_s_timm', 81.506, 95, f'{_TIMM}/tnt_s_patch16_224.in1k/{_TIMM_FILE}'),
        ),
    ),
    'base': dict(
        alias='b',
        depth=12,
        outer_dim=640,
        inner_dim=40,
        outer_heads=10,
        inner_heads=4,
        words=16,
        published=(
            Published('tnt_b', 82.9, 262, f'{_TNT_RELEASE}/tnt_b_82.9.pth.tar'),
            Published('tnt_b_timm', 82.864, 262, f'{_TIMM}/tnt_b_patch16_224.in1k/{_TIMM_FILE}'),
        ),
    ),
}
"""TNT (arXiv 2103.00112, table 1). ``words`` is the number of inner tokens of an outer one."""

_FOR_MMPRETRAIN = 'tnt/tnt-small-p16_3rdparty_in1k_20210903-c56ee7df.pth'

LEGACY_TNT_ARCHS = {
    'small': TNT_ARCHS['small']
    | dict(
        published=(
            Published('tnt_s_legacy', 81.512, 95, f'{_TIMM_RELEASE}/tnt_s_patch16_224.pth.tar'),
            Published(
                'tnt_s_legacy_timm',
                81.512,
                95,
                f'{_TIMM}/tnt_s_legacy_patch16_224.in1k/{_TIMM_FILE}',
            ),
            Published(
                'tnt_s_legacy_mmpretrain',
                81.52,
                95,
                f'{_OPENMMLAB}/{_FOR_MMPRETRAIN}',
                sha256='c56ee7df',
            ),
        )
    ),
}
"""TNT as timm had it first: three copies of the same weights, the last with mmpretrain's names."""

CPVT_ARCHS = {
    'tiny': dict(alias='ti', depth=12, dim=192, heads=3, published=(Published('cpvt_ti', 73.4),)),
    'small': dict(alias='s', depth=12, dim=384, heads=6, published=()),
    'base': dict(alias='b', depth=12, dim=768, heads=12, published=()),
}
"""CPVT (arXiv 2102.10882, table 1), the widths of DeiT. Its authors published no weights."""

FAMILY = {
    'PyramidTNT': ARCHS,
    'TNT': TNT_ARCHS,
    'LegacyTNT': LEGACY_TNT_ARCHS,
    'CPVT': CPVT_ARCHS,
}
"""The rows of each class."""


def full_names(archs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Map every accepted spelling, names and aliases, to the name of the arch."""
    return {word: name for name, row in archs.items() for word in (name, row['alias'])}


def settings(row: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the backbone of a row is built from."""
    return {key: value for key, value in row.items() if key not in NOT_BUILT}
