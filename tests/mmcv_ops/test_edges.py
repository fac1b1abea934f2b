"""Points exactly on the edge of a map, where libraries differ: we compute what mmcv does.

The expected numbers come from `references.py`.
"""

import numpy as np
import pytest
import torch
from mmcv import ops
from mmcv.ops.multi_scale_deform_attn import MultiScaleDeformableAttnFunction

from mmcv_ops import references
from mmcv_ops.make_golden import with_gradients
from mmcv_ops.references import normal

H, W = 5, 4
GEOMETRIES = {  # stride, padding, dilation, groups, deformable groups
    'plain': ((1, 1), (1, 1), (1, 1), 1, 1),
    'wide_padding': ((1, 1), (2, 3), (1, 1), 1, 1),
    'strided': ((2, 1), (1, 1), (1, 1), 1, 1),
    'dilated': ((1, 1), (2, 1), (2, 1), 1, 1),
    'grouped': ((1, 1), (1, 1), (1, 1), 2, 1),
    'deformable_groups': ((1, 2), (1, 1), (1, 1), 1, 2),
    'all': ((2, 1), (1, 2), (1, 2), 2, 2),
}


def factors(shape: tuple[int, ...]) -> np.ndarray:
    """The gradient that `with_gradients` gives an output."""
    return (np.arange(np.prod(shape)) % 7.0).reshape(shape)


def inputs(geometry: tuple, offsets: str) -> list[torch.Tensor]:
    """Maps, offset, mask and weight of a modulated convolution."""
    stride, padding, dilation, groups, deform_groups = geometry
    h, w = (
        (side + 2 * pad - step * (taps - 1) - 1) // jump + 1
        for side, pad, step, taps, jump in zip(
            (H, W), padding, dilation, (3, 2), stride, strict=True
        )
    )
    offset = torch.zeros(2, deform_groups * 12, h, w, dtype=torch.float64)
    if offsets == 'mixed':  # half of the coordinates on the grid
        offset = torch.randint_like(offset, -3, 4)
        offset += torch.rand_like(offset) * (torch.rand_like(offset) > 0.5)
    return [
        normal(2, 4, H, W),
        offset,
        normal(2, deform_groups * 6, h, w),
        normal(6, 4 // groups, 3, 2),
    ]


def expected(tensors: list[torch.Tensor], geometry: tuple) -> list[np.ndarray]:
    """The output, and the gradients of the inputs."""
    output_shape = (2, 6, *tensors[1].shape[2:])
    arrays = (tensor.numpy() for tensor in tensors)
    return references.deform_conv(*arrays, factors(output_shape), *geometry[:4])


def check(found: list[torch.Tensor], expected: list[np.ndarray], tolerance: float = 1e-12) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(force=True), theirs, tolerance, tolerance)


@pytest.mark.parametrize('offsets', ['zero', 'mixed'])
@pytest.mark.parametrize('geometry', GEOMETRIES.values(), ids=GEOMETRIES)
class TestDeformConv:
    def test_modulated(self, geometry, offsets):
        tensors = inputs(geometry, offsets)
        found = with_gradients(
            lambda *t: ops.modulated_deform_conv2d(*t, None, *geometry), *tensors
        )
        check(found, expected(tensors, geometry))

    def test_plain(self, geometry, offsets):
        maps, offset, mask, weight = inputs(geometry, offsets)
        output, into_maps, into_offset, _, into_weight = expected(
            [maps, offset, torch.ones_like(mask), weight], geometry
        )
        for im2col_step in (1, 2):
            found = with_gradients(
                lambda *t, step=im2col_step: ops.deform_conv2d(*t, *geometry, False, step),
                *(maps, offset, weight),
            )
            check(found, [output, into_maps, into_offset, into_weight])


@pytest.mark.parametrize('dtype', [torch.float32, torch.float16, torch.bfloat16])
def test_the_edge_is_where_the_sum_of_offset_and_place_is_rounded_to(dtype):
    """In mmcv a point is -1 + 1e-9 = -1 in float32; half types are computed in float32 here."""
    maps, weight = normal(1, 2, 3, 3).to(dtype), normal(1, 2, 1, 1).to(dtype)
    offset = torch.tensor([-1e-9, 0.0], dtype=torch.float32).to(dtype).view(1, 2, 1, 1)
    offset = offset.expand(1, 2, 5, 5).clone()
    _, _, gradient, _ = with_gradients(lambda *t: ops.deform_conv2d(*t, 1, 1), maps, offset, weight)
    assert not gradient[:, :, 0].any() and not gradient[..., 0].any()
    assert gradient[:, 0, 2, 1:-2].all()


def test_a_fresh_layer():
    """Every DCNv2 layer starts with offsets of zero, so its padding is on the edge."""
    layer = ops.ModulatedDeformConv2dPack(2, 3, 3, padding=1).double()
    maps = normal(1, 2, H, W)
    layer(maps).backward(torch.from_numpy(factors((1, 3, H, W))))
    offset, mask = torch.zeros(1, 18, H, W), torch.full((1, 9, H, W), 0.5)
    arrays = (tensor.double().numpy() for tensor in (maps, offset, mask))
    expected = references.deform_conv(
        *arrays, layer.weight.detach().numpy(), factors((1, 3, H, W)), *GEOMETRIES['plain'][:4]
    )[2]
    check([layer.conv_offset.bias.grad[:18]], [expected.sum((0, 2, 3))])


def test_deformable_attention():
    """Levels whose sides are powers of 2, where every place has an exact location."""
    height, width = 4, 8
    places = np.stack(np.meshgrid(np.arange(-1, width + 1), np.arange(-1, height + 1)), -1)
    places = np.concatenate([places, places + [0.25, 0], places + [0, 0.25]])
    locations = (places.reshape(1, -1, 1, 3, 2).repeat(2, 2) + 0.5) / [width, height]
    value = normal(1, height * width, 2, 3)
    weights = normal(*locations.shape[:4])
    inputs = [value, torch.from_numpy(locations)[:, :, :, None], weights[:, :, :, None]]
    output, into_value, *found = with_gradients(
        lambda value, *points: MultiScaleDeformableAttnFunction.apply(
            value, torch.tensor([[height, width]]), torch.tensor([0]), *points, 64
        ),
        *inputs,
    )
    maps = value.unflatten(1, (height, width)).numpy()
    expected = references.attention(
        maps, locations, weights.numpy(), factors(output.shape).reshape(1, -1, 2, 3)
    )
    found = [output.view(1, -1, 2, 3), into_value.view(maps.shape), *(x.squeeze(3) for x in found)]
    check(found, expected)


@pytest.mark.parametrize('mode', ['avg', 'max'])
@pytest.mark.parametrize('aligned', [False, True])
def test_roi_align(mode, aligned):
    """Bins of one pixel, with samples on rows and columns -1, 0, 1 and so on."""
    start = torch.arange(-2, 5).double() - (0 if aligned else 0.5)
    starts = torch.cartesian_prod(start, start)
    rois = torch.cat([torch.zeros(len(starts), 1), starts, starts + torch.tensor([2, 3])], 1)
    maps = normal(1, 2, H, W)
    found = with_gradients(lambda x: ops.roi_align(x, rois, (3, 2), 1.0, 1, mode, aligned), maps)
    check(
        found,
        references.roi_align(
            maps.numpy(), rois.numpy(), factors((len(rois), 2, 3, 2)), 1.0, 1, mode, aligned
        ),
    )


def test_roi_align_counts_the_same_samples_forward_and_backward():
    """In float32, the last digit decides whether a sample next to the edge is inside."""
    top = torch.tensor([-1.1, -1.3, -1.7, -1.9, -2.3, -2.9])
    sides = (-1 - top) * 14 / torch.arange(1, 14, 2)[:, None]  # a sample at -1, or next to it
    top = top.expand_as(sides).flatten()
    rois = torch.stack([torch.zeros_like(top)] * 2 + [top, torch.full_like(top, 7.0)], 1)
    rois = torch.cat([rois, (top + sides.flatten())[:, None]], 1)
    output, gradient = with_gradients(
        lambda x: ops.roi_align(x, rois, (7, 1), 1.0, 1, 'avg', False), torch.ones(1, 1, 9, 9)
    )
    torch.testing.assert_close(
        gradient.sum(), (output * torch.from_numpy(factors(output.shape))).sum().float()
    )
