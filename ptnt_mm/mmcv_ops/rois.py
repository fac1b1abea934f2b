"""Pooling regions of interest: rois are (N, 5), the image's index in the batch and a box."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from .computing import gradients, widened
from .sampling import positions

_ops = torch.ops.torchvision

_NO_MAXIMUM = -10000.0
"""mmcv's value for the maximum of a bin without samples."""

_NOWHERE = -2.0
"""A coordinate outside every map, where value and gradient are 0."""


def roi_align_forward(
    input: Tensor,
    rois: Tensor,
    output: Tensor,
    argmax_y: Tensor,
    argmax_x: Tensor,
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    pool_mode: int,
    aligned: bool,
) -> None:
    """Input (B, C, H, W), rois (N, 5) -> output (N, C, aligned_height, aligned_width).

    The pool mode 1 is the mean of a bin's samples, 0 their maximum. The maximum fills also
    argmax_y and argmax_x, in shape and type of output, with the coordinates of its sample.
    """
    input, rois = widened(input, rois)
    size = (aligned_height, aligned_width)
    if pool_mode == 0:
        output.fill_(_NO_MAXIMUM)
        argmax_y.fill_(_NOWHERE)
        argmax_x.fill_(_NOWHERE)
        for image, chosen, y, x in _samples(rois, size, spatial_scale, sampling_ratio, aligned):
            values, best = _sampled(input[image, None], y, x).max(-1)
            output[chosen] = _by_roi(values, len(chosen), size).to(output)
            for argmax, position in ((argmax_y, y), (argmax_x, x)):
                position = position.expand(*best.shape[:2], -1, -1).gather(-1, best[..., None])
                argmax[chosen] = _by_roi(position.squeeze(-1), len(chosen), size).to(argmax)
    else:
        output.copy_(_ops.roi_align(input, rois, spatial_scale, *size, sampling_ratio, aligned))


def roi_align_backward(
    grad_output: Tensor,
    rois: Tensor,
    argmax_y: Tensor,
    argmax_x: Tensor,
    grad_input: Tensor,
    aligned_height: int,
    aligned_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    pool_mode: int,
    aligned: bool,
) -> None:
    """grad_output (N, C, h, w), for the maximum also argmax -> grad_input (B, C, H, W)."""
    wide, rois, y, x = widened(grad_output, rois, argmax_y, argmax_x)
    size = (aligned_height, aligned_width)
    if pool_mode == 0:
        wide = wide.masked_fill(y == -1, 0)  # mmcv's mark of a bin without a maximum.
        maps = wide.new_zeros(grad_input.shape)  # The samples are linear in them.
        grad_input.copy_(gradients(partial(_at, rois=rois, y=y, x=x), [maps], wide)[0])
    elif wide.device.type == 'cpu' and wide.dtype == grad_input.dtype:
        options = (spatial_scale, sampling_ratio, aligned)
        add_map_gradient(wide, rois, grad_input.zero_(), *options)
    else:
        options = (spatial_scale, *size, *grad_input.shape, sampling_ratio, aligned)
        grad_input.copy_(_ops._roi_align_backward(wide, rois, *options))


def roi_pool_forward(
    input: Tensor,
    rois: Tensor,
    output: Tensor,
    argmax: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> None:
    """Input (B, C, H, W), rois (N, 5) -> output and argmax (N, C, pooled_height, pooled_width).

    torchvision rounds the corners of a roi, mmcv those of its bins, so each bin becomes a roi here.
    """
    input, rois = widened(input, rois)
    size = (pooled_height, pooled_width)
    left, right = _pixels(rois[:, 1], rois[:, 3], pooled_width, spatial_scale, input.shape[3])
    top, bottom = _pixels(rois[:, 2], rois[:, 4], pooled_height, spatial_scale, input.shape[2])
    bins = torch.broadcast_tensors(
        rois[:, 0, None, None], left[:, None], top[..., None], right[:, None], bottom[..., None]
    )
    bins = torch.stack(bins, -1)  # (N, h, w, 5)
    is_empty = (bins[..., 3] < bins[..., 1]) | (bins[..., 4] < bins[..., 2])
    pooled, where = (
        _by_roi(result.squeeze(-1).squeeze(-1).T, len(rois), size)
        for result in _ops.roi_pool(input, bins.flatten(0, 2), 1.0, 1, 1)
    )
    output.copy_(pooled.masked_fill(is_empty[:, None], 0))
    argmax.copy_(where.masked_fill(is_empty[:, None], -1))


def roi_pool_backward(
    grad_output: Tensor,
    rois: Tensor,
    argmax: Tensor,
    grad_input: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
) -> None:
    """grad_output (N, C, h, w) -> grad_input (B, C, H, W)."""
    grad_output, rois = widened(grad_output, rois)
    size = (pooled_height, pooled_width)
    grad_input.copy_(
        _ops._roi_pool_backward(grad_output, rois, argmax, spatial_scale, *size, *grad_input.shape)
    )


def deform_roi_pool_forward(
    input: Tensor,
    rois: Tensor,
    offset: Tensor,
    output: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    gamma: float,
) -> None:
    """Input (B, C, H, W), rois (N, 5), offset (N, 2, h, w) or empty -> output (N, C, h, w).

    An offset moves its bin, in x and y, in units of gamma times the roi's sides.
    """
    tensors = widened(input, rois, offset)
    size = (pooled_height, pooled_width)
    output.copy_(_deform_pooled(*tensors, size, spatial_scale, sampling_ratio, gamma))


def deform_roi_pool_backward(
    grad_output: Tensor,
    input: Tensor,
    rois: Tensor,
    offset: Tensor,
    grad_input: Tensor,
    grad_offset: Tensor,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sampling_ratio: int,
    gamma: float,
) -> None:
    """grad_output (N, C, h, w) -> grad_input (B, C, H, W), grad_offset (N, 2, h, w) or empty."""
    input, rois, offset = widened(input, rois, offset)
    options = ((pooled_height, pooled_width), spatial_scale, sampling_ratio, gamma)
    into_maps, into_offset = gradients(
        lambda maps, offset: _deform_pooled(maps, rois, offset, *options),
        [input, offset],
        grad_output,
    )
    grad_input.copy_(into_maps)
    grad_offset.copy_(into_offset)


def _deform_pooled(
    input: Tensor,
    rois: Tensor,
    offset: Tensor,
    size: tuple[int, int],
    spatial_scale: float,
    sampling_ratio: int,
    gamma: float,
) -> Tensor:
    """The (N, C, h, w) of `deform_roi_pool_forward`."""
    output = input.new_zeros(len(rois), input.shape[1], *size)
    for image, chosen, y, x in _samples(rois, size, spatial_scale, sampling_ratio, aligned=True):
        if offset.numel():
            sides = gamma * spatial_scale * (rois[chosen, 3:] - rois[chosen, 1:3])
            move_x, move_y = (sides[..., None, None] * offset[chosen]).unbind(1)
            x, y = x + move_x.reshape(-1, 1), y + move_y.reshape(-1, 1)
        values = _sampled(input[image, None], y, x).mean(-1)
        output[chosen] = _by_roi(values, len(chosen), size)
    return output


def _samples(
    rois: Tensor, size: tuple[int, int], spatial_scale: float, sampling_ratio: int, aligned: bool
) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
    """Group rois of one image with the same number of samples in each bin.

    Args:
        rois: (N, 5).
        size: Rows and columns of bins, h and w.
        spatial_scale: Factor from the rois' coordinates to those of the map.
        sampling_ratio: Rows and columns of samples in a bin; 0 for about one per pixel.
        aligned: Pixel centres are at half coordinates; else a roi has at least a pixel's sides.

    Yields:
        The image's index, the rois' (n,), and y and x of their samples, (1, n * h * w, samples).
    """
    corners = rois[:, 1:] * spatial_scale - (0.5 if aligned else 0)
    start, sides = corners[:, :2], corners[:, 2:] - corners[:, :2]
    if not aligned:
        sides = sides.clamp(min=1)
    bins = sides / sides.new_tensor(size[::-1])
    counts = torch.full_like(bins, sampling_ratio) if sampling_ratio > 0 else bins.ceil()
    kinds, kind = torch.cat([rois[:, :1], counts], 1).long().unique(dim=0, return_inverse=True)
    for index, (image, columns, rows) in enumerate(kinds.tolist()):
        if columns <= 0 or rows <= 0:
            continue
        chosen = (kind == index).nonzero().squeeze(1)
        x = positions(start[chosen, 0], bins[chosen, 0], size[1], columns)
        y = positions(start[chosen, 1], bins[chosen, 1], size[0], rows)
        y, x = torch.broadcast_tensors(y[:, :, None, :, None], x[:, None, :, None, :])
        yield image, chosen, y.reshape(1, -1, rows * columns), x.reshape(1, -1, rows * columns)


def _sampled(maps: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Interpolate maps (B, C, H, W) at points (B, P, Q) -> (B, C, P, Q).

    Up to a pixel outside, a point has the value at the border; farther away, 0.
    """
    height, width = maps.shape[2:]
    is_inside = (y >= -1) & (y <= height) & (x >= -1) & (x <= width)
    grid = torch.stack([x / max(width - 1, 1), y / max(height - 1, 1)], -1) * 2 - 1
    values = grid_sample(maps, grid, padding_mode='border', align_corners=True)
    return values * is_inside[:, None]


def _at(input: Tensor, rois: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Interpolate each channel at its own points: (B, C, H, W) at (N, C, h, w) -> (N, C, h, w)."""
    output = torch.zeros_like(y)
    for image in rois[:, 0].unique().long().tolist():
        chosen = rois[:, 0] == image
        points = (position[chosen].transpose(0, 1).flatten(2) for position in (y, x))
        values = _sampled(input[image][:, None], *points)  # (C, 1, n, h * w)
        output[chosen] = values.squeeze(1).transpose(0, 1).unflatten(2, y.shape[2:])
    return output


def _by_roi(values: Tensor, rois: int, size: tuple[int, int]) -> Tensor:
    """(1, C, n * h * w) or (C, n * h * w) -> (n, C, h, w)."""
    return values.reshape(values.shape[-2], rois, *size).transpose(0, 1)


def _pixels(
    first: Tensor, last: Tensor, bins: int, spatial_scale: float, limit: int
) -> tuple[Tensor, Tensor]:
    """First and last pixel of each bin along one side of the rois: (N,), (N,) -> (N, bins) each.

    The last is less than the first where the bin is empty.
    """
    start = first * spatial_scale
    length = (last + 1) * spatial_scale - start
    edges = torch.arange(bins + 1, device=start.device) * (length / bins)[:, None] + start[:, None]
    begin, end = edges[:, :-1].floor(), edges[:, 1:].ceil()
    end = torch.where(length[:, None] > 0, end, begin)
    return begin.clamp(0, limit), end.clamp(0, limit) - 1


def add_map_gradient(
    grad_output: Tensor, rois: Tensor, grad_input: Tensor, scale: float, ratio: int, aligned: bool
) -> None:
    """Add the gradient of the mean over each bin to that of the maps.

    Args:
        grad_output: (N, C, h, w).
        rois: (N, 5), the image's index and a box.
        grad_input: (B, C, H, W), changed in place.
        scale: Factor from the rois' coordinates to those of the maps.
        ratio: Rows and columns of samples in a bin; 0 for about one per pixel.
        aligned: Pixel centres are at half coordinates; else a roi has at least a pixel's sides.
    """
    # A diverged model's boxes may be NaN; then the loss is NaN too.
    corners = rois[:, 1:].nan_to_num(0, 0, 0) * scale - (0.5 if aligned else 0)
    start, sides = corners[:, :2], corners[:, 2:] - corners[:, :2]
    if not aligned:
        sides = sides.clamp(min=1)
    (height, width), (rows, columns) = grad_output.shape[2:], grad_input.shape[2:]
    by_column = _shares(start[:, 0], sides[:, 0] / width, width, ratio, columns)
    by_row = _shares(start[:, 1], sides[:, 1] / height, height, ratio, rows)
    places = zip(rois[:, 0].long().tolist(), _touched(by_row), _touched(by_column), strict=True)
    for n, (image, y, x) in enumerate(places):
        along_rows = grad_output[n] @ by_column[n, :, x]
        grad_input[image, :, y, x] += by_row[n, :, y].T @ along_rows


def _shares(start: Tensor, length: Tensor, bins: int, ratio: int, size: int) -> Tensor:
    """The share of each pixel along one side in each bin: (N,), (N,) -> (N, bins, size)."""
    shares = start.new_zeros(len(start), bins, size)
    counts = torch.full_like(length, ratio) if ratio > 0 else length.ceil().clamp(min=0)
    counts = counts[:, None, None]
    if not len(start) or not counts.any():
        return shares
    # All bins have as many samples as the largest; surplus samples have no weight.
    sample = torch.arange(int(counts.max()), device=start.device)
    bin = torch.arange(bins, device=start.device)[:, None]
    start, length = start[:, None, None], length[:, None, None]
    # In the order of the forward pass, so that points on the edge are rounded to the same side.
    at = start + bin * length + (sample + 0.5) * length / counts.clamp(min=1)
    counted = (at >= -1) & (at <= size) & (sample < counts)
    share = counted / counts.clamp(min=1)
    at = at.clamp(0, size - 1)
    low = at.long()
    to_next = (at - low) * share
    shares.scatter_add_(2, low, share - to_next)
    return shares.scatter_add_(2, (low + 1).clamp(max=size - 1), to_next)


def _touched(shares: Tensor) -> list[slice]:
    """The pixels from the first to the last with a share, for each roi."""
    touched = shares.any(1).int()
    first = touched.argmax(1)
    last = touched.shape[1] - touched.flip(1).argmax(1)
    last = torch.where(touched.any(1), last, 0)
    return [slice(*ends) for ends in zip(first.tolist(), last.tolist(), strict=True)]
