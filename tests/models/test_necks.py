"""Levels of other strides."""

import math
import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models import AveragePoolNeck, FinerLevelNeck, SimpleFeaturePyramid, TransposedConvNeck

from . import golden

CHANNELS = (8, 16, 16, 8)


def build(**options) -> TransposedConvNeck:
    return golden.filled(TransposedConvNeck(CHANNELS, **options)).eval()


def maps(height: int, width: int, batch: int = 1) -> list[torch.Tensor]:
    """Maps of a backbone for an image of this size."""
    return [
        torch.randn(batch, channels, math.ceil(height / stride), math.ceil(width / stride))
        for channels, stride in zip(CHANNELS, (8, 16, 32, 64), strict=True)
    ]


@pytest.mark.parametrize(('height', 'width'), [(8, 8), (101, 211), (800, 1333), (33, 2047)])
def test_levels_line_up_at_any_size(height, width):
    """Level i has the size of input level i - 1: half of level i - 1, rounded up."""
    levels = maps(height, width)
    doubled = build()(levels)
    assert doubled[0].shape[2:] == tuple(2 * side for side in levels[0].shape[2:])
    for finer, output, channels in zip(levels[:-1], doubled[1:], CHANNELS[1:], strict=True):
        assert output.shape == (1, channels, *finer.shape[2:])
        assert output.is_contiguous()


@pytest.mark.parametrize('kernel_size', [2, 3, 4, 5])
def test_every_kernel_doubles(kernel_size):
    neck = TransposedConvNeck([8], kernel_size=kernel_size)
    assert neck([torch.randn(1, 8, 5, 7)])[0].shape == (1, 8, 10, 14)


def test_a_level_is_what_the_spec_writes():
    neck, levels = build(), maps(64, 96)
    for upsampler, level, output in zip(neck.upsamplers, levels, neck(levels), strict=True):
        up, norm1, _, smooth, norm2, _ = upsampler
        expected = F.gelu(norm1(F.conv_transpose2d(level, up.weight, stride=2)))
        expected = F.gelu(norm2(F.conv2d(expected, smooth.weight, padding=1)))
        torch.testing.assert_close(output, expected[..., : output.shape[2], : output.shape[3]])


def test_a_transposed_convolution_of_kernel_2_writes_each_cell_on_its_own():
    neck, (level, *_) = build(), maps(64, 96)
    up = neck.upsamplers[0][0]
    expected = torch.einsum('bchw,cdyx->bdhywx', level, up.weight).flatten(4, 5).flatten(2, 3)
    torch.testing.assert_close(up(level), expected)


def test_convolutions_have_no_bias_and_widths_stay():
    neck = build()
    assert neck.out_channels == neck.in_channels == CHANNELS
    for module in neck.modules():
        if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
            assert module.bias is None
    weights = sum(channels**2 * (4 + 9) + 4 * channels for channels in CHANNELS)
    assert sum(p.numel() for p in neck.parameters()) == weights


def test_every_parameter_gets_a_gradient():
    neck = build().train()
    sum(output.square().mean() for output in neck(maps(64, 96, batch=2))).backward()
    assert all(parameter.grad.any() for parameter in neck.parameters())


def test_norm_cfg():
    neck = TransposedConvNeck([8], norm_cfg=dict(type='SyncBN', requires_grad=False))
    norms = [module for module in neck.modules() if isinstance(module, nn.SyncBatchNorm)]
    assert len(norms) == 2
    assert not any(p.requires_grad for norm in norms for p in norm.parameters())


@pytest.mark.parametrize('kind', [TransposedConvNeck, FinerLevelNeck])
def test_a_neck_without_norms(kind: type[nn.Module]):
    neck = kind([8], norm_cfg=None)
    assert {type(part) for part in neck.modules() if not [*part.children()]} == {
        nn.ConvTranspose2d, nn.Conv2d, nn.Identity, nn.GELU
    }  # fmt: skip
    assert neck([torch.randn(1, 8, 4, 6)])[0].shape == (1, 8, 8, 12)


def test_fresh_weights_keep_the_variance():
    neck = TransposedConvNeck([256])
    neck.init_weights()
    # Fan out: 256 channels times 2 x 2 places, then times 3 x 3.
    assert neck.upsamplers[0][0].weight.std().item() == pytest.approx((2 / 1024) ** 0.5, rel=0.02)
    assert neck.upsamplers[0][3].weight.std().item() == pytest.approx((2 / 2304) ** 0.5, rel=0.02)


@pytest.mark.parametrize('order', [(0, 1, 2), (0, 1, 2, 3, 3), (1, 0, 2, 3)])
def test_other_levels(order):
    """Fewer, more, or of other widths."""
    levels = [maps(64, 96)[i] for i in order]
    got = tuple(CHANNELS[i] for i in order)
    with pytest.raises(ValueError, match=re.escape(f'{CHANNELS} channels, but got {got}')):
        build()(levels)


@pytest.mark.parametrize(
    ('sizes', 'message'),
    [
        ([(4, 6), (4, 6)], r'got maps of \(4, 6\), \(4, 6\)'),  # of a backbone of one scale
        ([(8, 12), (2, 3)], r'got maps of \(8, 12\), \(2, 3\)'),  # a level is left out
        ([(4, 7), (2, 3)], 'rounded up'),
    ],
)
def test_levels_that_do_not_halve(sizes: list[tuple[int, int]], message: str):
    with pytest.raises(ValueError, match=message):
        TransposedConvNeck([8, 8])([torch.randn(1, 8, *size) for size in sizes])


@pytest.mark.parametrize('kernel_size', [1, 2.5, '3', True])
def test_a_kernel_that_leaves_gaps(kernel_size: object):
    with pytest.raises(ValueError, match=f'kernel_size is {kernel_size!r}: expected an integer of'):
        TransposedConvNeck([8], kernel_size=kernel_size)


@pytest.mark.parametrize(('height', 'width'), [(64, 96), (101, 211)])
def test_a_finer_level_comes_before_the_others(height: int, width: int):
    neck = golden.filled(FinerLevelNeck(CHANNELS)).eval()
    levels = maps(height, width)
    finer, *others = neck(levels)
    assert finer.shape[1:] == (CHANNELS[0], *(2 * side for side in levels[0].shape[2:]))
    assert finer.is_contiguous()
    assert all(one is other for one, other in zip(others, levels, strict=True))
    up, norm1, _, smooth, norm2, _ = neck.upsampler
    expected = F.gelu(norm1(F.conv_transpose2d(levels[0], up.weight, stride=2)))
    expected = F.gelu(norm2(F.conv2d(expected, smooth.weight, padding=1)))
    torch.testing.assert_close(finer, expected)
    assert neck.out_channels == (CHANNELS[0], *CHANNELS)


def test_a_finer_level_neck_returns_contiguous_maps():
    levels = [level.to(memory_format=torch.channels_last) for level in maps(64, 96)]
    assert all(level.is_contiguous() for level in FinerLevelNeck(CHANNELS).eval()(levels))


def test_levels_of_another_backbone():
    with pytest.raises(ValueError, match='FinerLevelNeck was built for levels with'):
        FinerLevelNeck([4, *CHANNELS[1:]])(maps(64, 96))


@pytest.mark.parametrize('hw', [(6, 8), (5, 7), (1, 1)])
def test_levels_have_their_strides_and_line_up(hw):
    neck = SimpleFeaturePyramid(16, 8, out_strides=(4, 8, 16, 32, 64))
    levels = neck((torch.randn(1, 4, 3, 3), torch.randn(2, 16, *hw)))
    sides = [(-(-16 * hw[0] // stride), -(-16 * hw[1] // stride)) for stride in (4, 8, 16, 32, 64)]
    assert [tuple(level.shape) for level in levels] == [(2, 8, *side) for side in sides]
    assert neck.out_channels == (8,) * 5
    assert all(level.is_contiguous() for level in levels)


def test_every_level_trains_its_own_parameters():
    neck = SimpleFeaturePyramid(16, 8)
    levels = neck((torch.randn(2, 16, 6, 8),))
    for level, layers in zip(levels, neck.levels, strict=True):
        level.square().mean().backward()
        assert all(parameter.grad is not None for parameter in layers.parameters())


def test_the_pooled_level_is_the_maximum_of_its_places():
    """Before the convolutions; a window over the border uses the pixels inside."""
    (level,) = SimpleFeaturePyramid(4, 8, out_strides=(32,)).levels
    feature = torch.randn(1, 4, 5, 3)
    pooled = level[0](feature)
    assert pooled.shape[2:] == (3, 2)
    assert torch.equal(pooled[..., 2, 1], feature[:, :, 4, 2])
    assert torch.equal(pooled[..., 0, 0], feature[:, :, :2, :2].amax(dim=(2, 3)))


def test_places_are_normalised_over_their_channels():
    neck = SimpleFeaturePyramid(16, 8, out_strides=(16,))
    (level,) = neck((torch.randn(2, 16, 6, 8),))
    torch.testing.assert_close(level.mean(dim=1), torch.zeros(2, 6, 8), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ('strides', 'message'),
    [
        ((), 'out_strides is (): expected increasing numbers'),
        (4, 'out_strides is 4: expected integers above 0'),
        ((0, 4), 'out_strides is (0, 4): expected integers above 0'),
        ((8, 4), 'out_strides is (8, 4): expected increasing numbers'),
        ((8, 24), 'strides 16 and 24: expected a power of 2 between them'),
        ((6,), 'strides 6 and 16: expected a power of 2 between them'),
    ],
)
def test_bad_strides(strides, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        SimpleFeaturePyramid(16, 8, out_strides=strides)


@pytest.mark.parametrize(
    ('settings', 'message'),
    [
        (dict(in_channels=[16]), 'in_channels is [16]: expected an integer above 0'),
        (dict(in_stride=0), 'in_stride is 0: expected an integer above 0'),
        (dict(in_channels=6), 'in_channels is 6: expected a multiple of 4, as they are halved 2'),
    ],
)
def test_bad_input(settings, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        SimpleFeaturePyramid(**dict(in_channels=16) | settings)


def test_another_width_is_named():
    with pytest.raises(ValueError, match='built for 16 channels, but got 24'):
        SimpleFeaturePyramid(16)((torch.randn(1, 24, 4, 4),))


def test_averages_are_contiguous_whatever_the_order_of_the_maps():
    map_ = torch.randn(1, 8, 7, 5)
    (found,) = AveragePoolNeck(8)([map_.contiguous(memory_format=torch.channels_last)])
    assert found.is_contiguous()
    torch.testing.assert_close(found, F.avg_pool2d(map_, 2, ceil_mode=True))


def test_averages_of_other_channels():
    message = 'AveragePoolNeck was built for 8 channels, but got 4: compare in_channels'
    with pytest.raises(ValueError, match=message):
        AveragePoolNeck(8)([torch.randn(1, 8, 7, 7), torch.randn(1, 4, 7, 7)])


@pytest.mark.parametrize('value', [0, -8, '8', 8.0, True, None, (8,)])
def test_channels_that_are_no_number_of_channels(value):
    for build_neck, name in (
        (AveragePoolNeck, 'in_channels'),
        (SimpleFeaturePyramid, 'in_channels'),
        (lambda value: SimpleFeaturePyramid(64, value), 'out_channels'),
    ):
        message = re.escape(f'{name} is {value!r}: expected an integer above 0')
        with pytest.raises(ValueError, match=message):
            build_neck(value)
