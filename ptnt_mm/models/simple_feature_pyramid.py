"""A feature pyramid from one map, for single-scale backbones."""

from collections.abc import Sequence

from mmengine.model import BaseModule
from torch import Tensor, nn

from ptnt_mm.models.arguments import is_positive
from ptnt_mm.models.layers.norm import MapNorm
from ptnt_mm.registry import MODELS


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
        for name, number in dict(in_channels=in_channels, in_stride=in_stride).items():
            if not is_positive(number):
                raise ValueError(f'{name} is {number!r}: expected an integer above 0')
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
        last = maps[-1]
        if last.shape[1] != self.in_channels:
            raise ValueError(
                f'SimpleFeaturePyramid was built for {self.in_channels} channels, but got '
                f"{last.shape[1]}: compare in_channels with the backbone's arch"
            )
        # Contiguous, because consumers may ignore strides: mmcv's RoIAlign does.
        return tuple(level(last).contiguous() for level in self.levels)


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
