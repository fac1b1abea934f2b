"""Sampling maps (B, C, H, W) along rotated boxes."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from .computing import gradients, widened
from .sampling import positions, summed_at


def roi_align_rotated_forward(
    input: Tensor,
    rois: Tensor,
    output: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
    clockwise: bool,
) -> None:
    """Input (B, C, H, W), rois (N, 6) -> output (N, C, h, w), the mean of each bin's samples.

    A roi is the image's index, x, y, width, height and the angle in radians.
    """
    options = (output.shape[2:], spatial_scale, sampling_ratio, aligned, clockwise)
    output.copy_(_aligned(*widened(input, rois), *options))


def roi_align_rotated_backward(
    grad_output: Tensor,
    rois: Tensor,
    grad_input: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
    clockwise: bool,
) -> None:
    """grad_output (N, C, h, w) -> grad_input (B, C, H, W)."""
    grad_output, rois = widened(grad_output, rois)
    options = (grad_output.shape[2:], spatial_scale, sampling_ratio, aligned, clockwise)
    _into_maps(lambda maps: _aligned(maps, rois, *options), grad_output, grad_input)


def riroi_align_rotated_forward(
    features: Tensor,
    rois: Tensor,
    output: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    num_samples: int,
    num_orientations: int,
    clockwise: bool,
) -> None:
    """The same, where the orientations in the channels are turned back by a roi's angle.

    The channels are C / num_orientations groups of num_orientations.
    """
    options = (output.shape[2:], spatial_scale, num_samples, num_orientations, clockwise)
    output.copy_(_invariant(*widened(features, rois), *options))


def riroi_align_rotated_backward(
    top_grad: Tensor,
    rois: Tensor,
    bottom_grad: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    num_samples: int,
    num_orientations: int,
    clockwise: bool,
) -> None:
    """top_grad (N, C, h, w) -> bottom_grad (B, C, H, W)."""
    top_grad, rois = widened(top_grad, rois)
    options = (top_grad.shape[2:], spatial_scale, num_samples, num_orientations, clockwise)
    _into_maps(lambda maps: _invariant(maps, rois, *options), top_grad, bottom_grad)


def rotated_feature_align_forward(
    features: Tensor, best_bboxes: Tensor, output: Tensor, spatial_scale: float, points: int
) -> None:
    """Add to each pixel what lies at the centre of its box, and at its corners if points is 5.

    Features and output are (B, C, H, W); best_bboxes (B, H, W, 5), or flat (B * H * W, 5), are y,
    x, width, height and the angle, in this order as in mmcv.
    """
    output.copy_(_refined(*widened(features, best_bboxes), spatial_scale, points))


def rotated_feature_align_backward(
    top_grad: Tensor, best_bboxes: Tensor, bottom_grad: Tensor, spatial_scale: float, points: int
) -> None:
    """top_grad (B, C, H, W) -> bottom_grad (B, C, H, W)."""
    top_grad, boxes = widened(top_grad, best_bboxes)
    _into_maps(lambda maps: _refined(maps, boxes, spatial_scale, points), top_grad, bottom_grad)


def _into_maps(function: Callable, grad_output: Tensor, grad_input: Tensor) -> None:
    """Fill in the gradient by the maps, in which the function is linear."""
    maps = grad_output.new_zeros(grad_input.shape)
    grad_input.copy_(gradients(function, [maps], grad_output)[0])


def _aligned(
    maps: Tensor,
    rois: Tensor,
    size: tuple[int, int],
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
    clockwise: bool,
) -> Tensor:
    """The (N, C, h, w) of `roi_align_rotated_forward`."""
    output = maps.new_zeros(len(rois), size[0] * size[1], maps.shape[1])
    for chosen, y, x in _samples(rois, size, spatial_scale, sampling_ratio, aligned, clockwise):
        image = rois[chosen, 0].long().repeat_interleave(output.shape[1])
        sums = summed_at(maps, image, y.flatten(0, 1), x.flatten(0, 1))
        output[chosen] = sums.unflatten(0, y.shape[:2]) / y.shape[2]
    return output.transpose(1, 2).unflatten(2, size)


def _samples(
    rois: Tensor,
    size: tuple[int, int],
    spatial_scale: float,
    sampling_ratio: int,
    aligned: bool,
    clockwise: bool,
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Group rois with the same number of samples in each bin.

    Yields:
        The rois' indices, (n,), and y and x of their samples, (n, h * w, samples).
    """
    centre, sides = rois[:, 1:3] * spatial_scale - (0.5 if aligned else 0), rois[:, 3:5]
    sides = sides * spatial_scale
    if not aligned:
        sides = sides.clamp(min=1)
    bins = sides / sides.new_tensor(size[::-1])
    counts = torch.full_like(bins, sampling_ratio) if sampling_ratio > 0 else bins.ceil()
    angle = rois[:, 5, None, None] * (-1 if clockwise else 1)
    cos, sin = angle.cos(), angle.sin()
    kinds, kind = counts.long().unique(dim=0, return_inverse=True)
    for index, (columns, rows) in enumerate(kinds.tolist()):
        if columns <= 0 or rows <= 0:
            continue
        chosen = (kind == index).nonzero().squeeze(1)
        along = positions(-sides[chosen, 0] / 2, bins[chosen, 0], size[1], columns)
        down = positions(-sides[chosen, 1] / 2, bins[chosen, 1], size[0], rows)
        down, along = torch.broadcast_tensors(down[:, :, None, :, None], along[:, None, :, None])
        down, along = (each.reshape(len(chosen), -1, rows * columns) for each in (down, along))
        x, y = centre[chosen, :, None, None].unbind(1)
        yield (
            chosen,
            down * cos[chosen] - along * sin[chosen] + y,
            down * sin[chosen] + along * cos[chosen] + x,
        )


def _invariant(
    maps: Tensor,
    rois: Tensor,
    size: tuple[int, int],
    spatial_scale: float,
    num_samples: int,
    orientations: int,
    clockwise: bool,
) -> Tensor:
    """The (N, C, h, w) of `riroi_align_rotated_forward`."""
    pooled = _aligned(maps, rois, size, spatial_scale, num_samples, False, clockwise)
    pooled = pooled.unflatten(1, (-1, orientations))
    turn = (rois[:, 5] * orientations / (2 * math.pi))[:, None, None, None, None]
    source = torch.arange(orientations, device=rois.device)[:, None, None] - turn.floor().long()
    low, high = (
        pooled.take_along_dim((source + step).remainder(orientations), 2) for step in (0, 1)
    )
    return torch.lerp(low, high, turn - turn.floor()).flatten(1, 2)


def _refined(maps: Tensor, boxes: Tensor, spatial_scale: float, points: int) -> Tensor:
    """The (B, C, H, W) of `rotated_feature_align_forward`."""
    boxes = boxes.reshape(-1, 5)  # mmrotate's R3Det passes them like this
    y, x, width, height = (boxes[:, :4] * spatial_scale)[..., None].unbind(1)
    if points > 1:
        angle = boxes[:, 4, None]
        along = width / 2 * width.new_tensor([0, 1, -1, -1, 1])
        down = height / 2 * height.new_tensor([0, 1, 1, -1, -1])
        x, y = (
            x + along * angle.cos() - down * angle.sin(),
            y + along * angle.sin() + down * angle.cos(),
        )
    batch, _, *size = maps.shape
    image = torch.arange(batch, device=maps.device).repeat_interleave(size[0] * size[1])
    added = summed_at(maps, image, y, x).unflatten(0, (batch, *size))
    return maps + added.permute(0, 3, 1, 2)
