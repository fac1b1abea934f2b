"""Necks: twice the size of every level, one finer level more, or a pyramid from one map."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from mmengine.model import BaseModule
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.backbone import is_positive
from ptnt_mm.models.blocks import build_norm
from ptnt_mm.models.tokens import crop
from ptnt_mm.registry import MODELS


@MODELS.register_module()
class TransposedConvNeck(BaseModule):
    """Double the side of every level: strides 8, 16, 32, 64 become 4, 8, 16, 32.

    Per level a transposed convolution with stride 2 and a 3 x 3 convolution, each followed by
    a norm and GELU (arXiv 2201.00978, "Object Detection"). The paper gives neither kernel size
    nor widths: kernel 2 and unchanged widths are ours. Used before mmdet's FPN:
    ``neck=[dict(type='TransposedConvNeck', in_channels=...), dict(type='FPN', ...)]``.

    Args:
        in_channels: Channels of each input level, finest first. Outputs have the same.
        kernel_size: Side of the transposed convolutions, 2 or more.
        norm_cfg: Normalisation, see :func:`build_norm`; None for none.
        init_cfg: MMEngine's settings for random initialisation.

    Raises:
        ValueError: for a kernel size that is not an integer, or below the stride 2, which would
            leave gaps.
    """

    def __init__(
        self,
        in_channels: Sequence[int],
        kernel_size: int = 2,
        norm_cfg: dict | None = dict(type='BN'),  # noqa: B006  MMEngine's idiom; it is only read
        init_cfg: dict | list[dict] | None = dict(  # noqa: B006
            type='Kaiming', layer=['Conv2d', 'ConvTranspose2d']
        ),
    ):
        super().__init__(init_cfg)
        if not is_positive(kernel_size) or kernel_size < 2:
            raise ValueError(
                f'kernel_size is {kernel_size!r}: expected an integer of at least 2, the stride'
            )
        self.in_channels = tuple(in_channels)
        self.out_channels = self.in_channels
        self.upsamplers = nn.ModuleList(
            _upsampler(channels, kernel_size, norm_cfg) for channels in self.in_channels
        )

    def forward(self, levels: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Maps (B, C_i, h_i, w_i), finest first -> (B, C_i, 2 h_i, 2 w_i).

        Every level but the finest is cropped to the size of the next finer input level, so that
        levels line up at any image size: a grid of 7 merges into one of 4, which doubles to 8.
        All are contiguous.

        Raises:
            ValueError: if the levels' channels are not ``in_channels``, or one is not half the size
                of the one before, rounded up.
        """
        _check_channels(self, levels)
        _check_sizes(levels)
        doubled = [up(level) for up, level in zip(self.upsamplers, levels, strict=True)]
        sides = [finer.shape[2:] for finer in levels[:-1]]
        cropped = [crop(map_, hw) for map_, hw in zip(doubled[1:], sides, strict=True)]
        # Contiguous, because consumers may ignore strides: mmcv's RoIAlign does.
        return tuple(level.contiguous() for level in (doubled[0], *cropped))


@MODELS.register_module()
class FinerLevelNeck(BaseModule):
    """Add a level of half the stride before those of a backbone: 8, 16, 32, 64 gain a 4.

    The first map goes through a transposed convolution with stride 2 and a 3 x 3 convolution, each
    followed by a norm and GELU; the other maps are unchanged. Used before an FPN, for heads that
    need stride 4: ``neck=[dict(type='FinerLevelNeck', in_channels=...), dict(type='FPN', ...)]``.

    Args:
        in_channels: Channels of each input level, finest first.
        norm_cfg: Normalisation, see :func:`build_norm`; None for none.
        init_cfg: MMEngine's settings for random initialisation.
    """

    def __init__(
        self,
        in_channels: Sequence[int],
        norm_cfg: dict | None = dict(type='BN'),  # noqa: B006  MMEngine's idiom; it is only read
        init_cfg: dict | list[dict] | None = dict(  # noqa: B006
            type='Kaiming', layer=['Conv2d', 'ConvTranspose2d']
        ),
    ):
        super().__init__(init_cfg)
        self.in_channels = tuple(in_channels)
        self.out_channels = (self.in_channels[0], *self.in_channels)
        self.upsampler = _upsampler(self.in_channels[0], 2, norm_cfg)

    def forward(self, levels: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Maps (B, C_i, h_i, w_i), finest first -> (B, C_0, 2 h_0, 2 w_0), then the maps.

        All are contiguous.

        Raises:
            ValueError: if the levels' channels are not ``in_channels``.
        """
        _check_channels(self, levels)
        return tuple(level.contiguous() for level in (self.upsampler(levels[0]), *levels))


def _check_channels(neck: TransposedConvNeck | FinerLevelNeck, levels: Sequence[Tensor]) -> None:
    channels = tuple(level.shape[1] for level in levels)
    if channels != neck.in_channels:
        raise ValueError(
            f'{type(neck).__name__} was built for levels with {neck.in_channels} channels, but '
            f"got {channels}: compare in_channels with the backbone's arch and out_indices"
        )


def _check_sizes(levels: Sequence[Tensor]) -> None:
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return  # sizes may be unknown
    sizes = [tuple(level.shape[2:]) for level in levels]
    for finer, coarser in pairwise(sizes):
        if coarser != tuple(-(-side // 2) for side in finer):
            raise ValueError(
                f'TransposedConvNeck got maps of {", ".join(map(str, sizes))}: each must be half '
                'the size of the one before, rounded up. Choose consecutive out_indices; for maps '
                'of one size, use SimpleFeaturePyramid; if the backbone rounds down, pad images to '
                'a multiple of its largest stride (pad_size_divisor)'
            )


def _upsampler(channels: int, kernel_size: int, norm_cfg: dict | None) -> nn.Sequential:
    # With this padding the output side is exactly twice the input's, for odd and even kernels.
    up = nn.ConvTranspose2d(
        channels,
        channels,
        kernel_size,
        stride=2,
        padding=(kernel_size - 1) // 2,
        output_padding=kernel_size % 2,
        bias=False,
    )
    smooth = nn.Conv2d(channels, channels, 3, padding=1, bias=False)

    def norm() -> nn.Module:
        return nn.Identity() if norm_cfg is None else build_norm(norm_cfg, channels)

    return nn.Sequential(up, norm(), nn.GELU(), smooth, norm(), nn.GELU())


def _check_positive(**numbers: int) -> None:
    for name, number in numbers.items():
        if not is_positive(number):
            raise ValueError(f'{name} is {number!r}: expected an integer above 0')


def _check_maps(neck: nn.Module, maps: Sequence[Tensor]) -> None:
    """Raise a ValueError unless each map has the channels that the neck was built for."""
    for map_ in maps:
        if map_.shape[1] != neck.in_channels:
            raise ValueError(
                f'{type(neck).__name__} was built for {neck.in_channels} channels, but got '
                f"{map_.shape[1]}: compare in_channels with the backbone's arch"
            )


@MODELS.register_module()
class AveragePoolNeck(BaseModule):
    """Average each map over windows of 2 x 2 places, which doubles its stride.

    Args:
        in_channels: Channels of the maps. Outputs have the same.

    Raises:
        ValueError: for channels that are not an integer above 0.
    """

    def __init__(self, in_channels: int):
        super().__init__()
        _check_positive(in_channels=in_channels)
        self.in_channels = self.out_channels = in_channels

    def forward(self, maps: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Maps (B, C, h, w) -> (B, C, ceil(h / 2), ceil(w / 2)), contiguous.

        Raises:
            ValueError: if a map does not have ``in_channels`` channels.
        """
        _check_maps(self, maps)
        return tuple(F.avg_pool2d(map_, 2, ceil_mode=True).contiguous() for map_ in maps)


@MODELS.register_module()
class SimpleFeaturePyramid(BaseModule):
    """Resample the last map to each stride separately (arXiv 2203.16527, section 3).

    Every halving of the stride is a transposed convolution with half the channels, with LayerNorm
    and GELU between two of them; every doubling is a max pooling. Each level ends with a 1 x 1 and
    a 3 x 3 convolution, each followed by LayerNorm.

    Args:
        in_channels: Channels of the map.
        out_channels: Channels of every level.
        in_stride: Stride of the map, in pixels.
        out_strides: Strides of the levels, finest first: ``in_stride`` times powers of 2.
        init_cfg: MMEngine's settings for random initialisation.

    Raises:
        ValueError: for strides that do not increase or whose ratio to ``in_stride`` is not a power
            of 2, or channels that cannot be halved that often.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int = 256,
        in_stride: int = 16,
        out_strides: Sequence[int] = (4, 8, 16, 32),
        init_cfg: dict | list[dict] | None = dict(  # noqa: B006  MMEngine's idiom; only read
            type='Kaiming', layer=['Conv2d', 'ConvTranspose2d']
        ),
    ):
        super().__init__(init_cfg)
        _check_positive(in_channels=in_channels, out_channels=out_channels, in_stride=in_stride)
        if not isinstance(out_strides, Sequence) or not all(map(is_positive, out_strides)):
            raise ValueError(f'out_strides is {out_strides!r}: expected integers above 0')
        if list(out_strides) != sorted(set(out_strides)) or not out_strides:
            raise ValueError(f'out_strides is {out_strides}: expected increasing numbers')
        self.in_channels = in_channels
        self.out_channels = (out_channels,) * len(out_strides)
        self.levels = nn.ModuleList(
            _level(in_channels, out_channels, in_stride, stride) for stride in out_strides
        )

    def forward(self, maps: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """Maps, the last (B, C, h, w) -> one (B, C', ceil(h * in / out), ceil(w * in / out)) each.

        All are contiguous.

        Raises:
            ValueError: if the last map does not have ``in_channels`` channels.
        """
        return self._resampled([maps[-1]] * len(self.levels))

    def _resampled(self, maps: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """A map (B, C, h, w) for each level -> the levels."""
        _check_maps(self, maps)
        # Contiguous, because consumers may ignore strides: mmcv's RoIAlign does.
        levels = zip(self.levels, maps, strict=True)
        return tuple(level(map_).contiguous() for level, map_ in levels)


@MODELS.register_module()
class ResampledMapsNeck(SimpleFeaturePyramid):
    """Resample a map of several blocks to a stride each (arXiv 2103.00112, section A.3).

    The first map, of the shallowest block, becomes the finest level. Layers and arguments are those
    of :class:`SimpleFeaturePyramid`.
    """

    def forward(self, maps: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """One map (B, C, h, w) per level -> (B, C', ceil(h * in / out), ceil(w * in / out)) each.

        Raises:
            ValueError: unless there is a map of ``in_channels`` channels for each level.
        """
        if len(maps) != len(self.levels):
            raise ValueError(
                f'ResampledMapsNeck has {len(self.levels)} levels, but got {len(maps)} maps: give '
                "out_strides and the backbone's out_indices the same length"
            )
        return self._resampled(maps)


def _level(in_channels: int, out_channels: int, in_stride: int, out_stride: int) -> nn.Sequential:
    channels, layers = in_channels, []
    steps = _power_of_2(max(in_stride, out_stride), min(in_stride, out_stride))
    if out_stride > in_stride:
        layers += [nn.MaxPool2d(2, ceil_mode=True) for _ in range(steps)]
    elif in_channels % 2**steps:
        raise ValueError(
            f'in_channels is {in_channels}: expected a multiple of {2**steps}, as they are halved '
            f'{steps} times from stride {in_stride} to {out_stride}'
        )
    else:
        for step in range(steps):
            if step:
                layers += [MapNorm(channels), nn.GELU()]
            layers += [nn.ConvTranspose2d(channels, channels // 2, 2, stride=2)]
            channels //= 2
    return nn.Sequential(
        *layers,
        nn.Conv2d(channels, out_channels, 1, bias=False),
        MapNorm(out_channels),
        nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False),
        MapNorm(out_channels),
    )


def _power_of_2(larger: int, smaller: int) -> int:
    """Number of doublings from ``smaller`` to ``larger``."""
    power = (larger // smaller).bit_length() - 1
    if smaller * 2**power != larger:
        raise ValueError(f'strides {smaller} and {larger}: expected a power of 2 between them')
    return power


class MapNorm(nn.LayerNorm):
    """Normalise the channels of each place of a map."""

    def forward(self, feature: Tensor) -> Tensor:
        """(B, C, h, w) -> (B, C, h, w), in channels-last order."""
        return super().forward(feature.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
