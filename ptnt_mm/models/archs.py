"""The variants as data: PyramidTNT's, TNT's and CPVT's, each from its paper.

A row holds the settings of the backbone and the keys in :data:`NOT_BUILT`: ``alias``, the variant's
short name in config names, and ``published``, or None.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

GREY = (127.5, 127.5, 127.5)


class Published(NamedTuple):
    """The accuracy and weights on ImageNet-1k that the authors of a variant published."""

    top_1: float
    """Percent, from the paper."""

    file: str | None = None
    """Name of the checkpoint."""

    release: str | None = None
    """Address of the folder with the file; None where it has no plain address."""

    mean: tuple[float, float, float] = GREY
    """Subtracted from RGB values in [0, 255] before the images enter the network."""

    std: tuple[float, float, float] = GREY
    """Divisor of the values after the subtraction."""

    @property
    def url(self) -> str | None:
        """Address of the checkpoint."""
        return f'{self.release}/{self.file}' if self.release else None


NOT_BUILT = ('alias', 'published')
"""Keys of a row that describe the variant and are not settings of the backbone."""

_TNT_RELEASE = 'https://github.com/huawei-noah/Efficient-AI-Backbones/releases/download/tnt'

PATCH = 8
"""Side length of a first-stage outer token, in pixels."""

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
        published=Published(75.2, 'ptnt_ti_75.2.pth.tar'),
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
        published=Published(82.0, 'ptnt_s_82.0.pth.tar'),
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
        published=Published(83.5, 'ptnt_m_83.5.pth.tar'),
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
        published=Published(84.1, 'ptnt_b_84.1.pth.tar'),
    ),
}
"""PyramidTNT (arXiv 2201.00978, table 1, and the authors' code). Tuples hold one value per stage.

``inner_depths`` is the number of blocks, counted from the stage's first, that have an inner
transformer. ``pretrain_img_size`` is the side length, in pixels, of the pretraining images; the
position tables are stored for that size.
"""

SR_RATIOS = (4, 2, 1, 1)
"""Side length, in tokens, of the windows over which each stage averages its outer keys."""

PLAIN_PATCH = 16
"""Side length of an outer token of TNT and of CPVT, in pixels."""

TNT_ARCHS = {
    'small': dict(
        alias='s',
        depth=12,
        outer_dim=384,
        inner_dim=24,
        outer_heads=6,
        inner_heads=4,
        words=16,
        published=Published(81.5, 'tnt_s_81.5.pth.tar', _TNT_RELEASE),
    ),
    'base': dict(
        alias='b',
        depth=12,
        outer_dim=640,
        inner_dim=40,
        outer_heads=10,
        inner_heads=4,
        words=16,
        published=Published(82.9, 'tnt_b_82.9.pth.tar', _TNT_RELEASE),
    ),
}
"""TNT (arXiv 2103.00112, table 1). ``words`` is the number of inner tokens of an outer one."""

CPVT_ARCHS = {
    'tiny': dict(alias='ti', depth=12, dim=192, heads=3, published=Published(73.4)),
    'small': dict(alias='s', depth=12, dim=384, heads=6, published=None),
    'base': dict(alias='b', depth=12, dim=768, heads=12, published=None),
}
"""CPVT (arXiv 2102.10882, table 1), the widths of DeiT."""


def full_names(archs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Map every accepted spelling, names and aliases, to the name of the arch."""
    return {word: name for name, row in archs.items() for word in (name, row['alias'])}


def settings(row: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the backbone of a row is built from."""
    return {key: value for key, value in row.items() if key not in NOT_BUILT}
