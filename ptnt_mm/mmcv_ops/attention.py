"""Attention to sampled points, and the masks of point-wise spatial attention (PSANet)."""

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from .computing import gradients, widened


def ms_deform_attn_forward(
    value: Tensor,
    value_spatial_shapes: Tensor,
    value_level_start_index: Tensor,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    im2col_step: int,
) -> Tensor:
    """Sum the values at sampled points, each times its weight.

    mmcv calls this only on a GPU; for the CPU it has a different version.

    Args:
        value: (B, sum of height * width of all levels, heads, channels).
        value_spatial_shapes: (levels, 2), height and width.
        value_level_start_index: Unused, it follows from the shapes.
        sampling_locations: (B, queries, heads, levels, points, 2), x and y from 0 to 1.
        attention_weights: (B, queries, heads, levels, points).
        im2col_step: Unused, all images are processed at once.

    Returns:
        (B, queries, heads * channels).
    """
    tensors = widened(value, sampling_locations, attention_weights)
    return _attended(value_spatial_shapes.tolist(), *tensors).to(value.dtype)


def ms_deform_attn_backward(
    value: Tensor,
    value_spatial_shapes: Tensor,
    value_level_start_index: Tensor,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    grad_output: Tensor,
    grad_value: Tensor,
    grad_sampling_loc: Tensor,
    grad_attn_weight: Tensor,
    im2col_step: int,
) -> None:
    """grad_output (B, queries, heads * channels) -> three gradients in their inputs' shapes."""
    shapes = value_spatial_shapes.tolist()
    tensors = widened(value, sampling_locations, attention_weights)
    found = gradients(lambda *inputs: _attended(shapes, *inputs), tensors, grad_output)
    for target, gradient in zip(
        (grad_value, grad_sampling_loc, grad_attn_weight), found, strict=True
    ):
        target.copy_(gradient)


def _attended(shapes: list[list[int]], value: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
    """The (B, queries, heads * channels) of `ms_deform_attn_forward`."""
    batch, queries, heads = weights.shape[:3]
    output = value.new_zeros(())
    levels = value.split([height * width for height, width in shapes], dim=1)
    for level, (shape, of_level) in enumerate(zip(shapes, levels, strict=True)):
        maps = of_level.permute(0, 2, 3, 1).flatten(0, 1).unflatten(2, shape)
        points, weight = (
            tensor[:, :, :, level].transpose(1, 2).flatten(0, 1) for tensor in (locations, weights)
        )
        sampled = grid_sample(maps, 2 * points - 1, align_corners=False)  # (B * heads, C, Q, P)
        weight = weight * _is_inside(points, shape)
        output = output + torch.einsum('bcqp,bqp->bqc', sampled, weight)
    return output.unflatten(0, (batch, heads)).transpose(1, 2).reshape(batch, queries, -1)


def _is_inside(points: Tensor, shape: list[int]) -> Tensor:
    """Whether points (..., 2), x and y from 0 to 1, are less than a pixel's side from a pixel.

    A point exactly on that edge always has the value 0. Its gradient is 0 in mmcv, but in
    grid_sample it is the one from inside.
    """
    size = points.new_tensor(shape[::-1])  # width and height
    at = points * size - 0.5
    return ((at > -1) & (at < size)).all(-1)


def psamask_forward(
    input: Tensor,
    output: Tensor,
    psa_type: int,
    num_: int,
    h_feature: int,
    w_feature: int,
    h_mask: int,
    w_mask: int,
    half_h_mask: int,
    half_w_mask: int,
) -> None:
    """Spread the mask around each pixel over the whole map.

    Args:
        input: (B, h_mask * w_mask, H, W), one mask for each pixel.
        output: (B, H * W, H, W); with the type 0 ("collect") the channels are the places in the
            mask and the pixels those that it is around, with 1 ("distribute") the reverse.
        psa_type: 0 or 1.
        num_: The batch size; like the arguments below, it follows from the shapes.
        h_feature: H.
        w_feature: W.
        h_mask: Rows of a mask.
        w_mask: Columns of a mask.
        half_h_mask: Rows above its middle.
        half_w_mask: Columns left of its middle.
    """
    sizes = (h_feature, w_feature, h_mask, w_mask, half_h_mask, half_w_mask)
    output.copy_(_spread(input, psa_type, *sizes))


def psamask_backward(
    grad_output: Tensor,
    grad_input: Tensor,
    psa_type: int,
    num_: int,
    h_feature: int,
    w_feature: int,
    h_mask: int,
    w_mask: int,
    half_h_mask: int,
    half_w_mask: int,
) -> None:
    """grad_output (B, H * W, H, W) -> grad_input (B, h_mask * w_mask, H, W)."""
    sizes = (h_feature, w_feature, h_mask, w_mask, half_h_mask, half_w_mask)
    # The masks are only moved, so their values do not matter.
    masks = torch.zeros_like(grad_input)
    found = gradients(lambda masks: _spread(masks, psa_type, *sizes), [masks], grad_output)
    grad_input.copy_(found[0])


def _spread(
    masks: Tensor,
    psa_type: int,
    height: int,
    width: int,
    h_mask: int,
    w_mask: int,
    half_h: int,
    half_w: int,
) -> Tensor:
    """The (B, H * W, H, W) of `psamask_forward`."""
    row = _relative(height, half_h, masks.device)[:, None, :, None]
    column = _relative(width, half_w, masks.device)[None, :, None, :]
    is_inside = (row >= 0) & (row < h_mask) & (column >= 0) & (column < w_mask)
    index = torch.where(is_inside, row * w_mask + column, 0).flatten(0, 1)
    collected = masks.gather(1, index.expand(len(masks), -1, -1, -1)) * is_inside.flatten(0, 1)
    if psa_type == 0:
        return collected
    return collected.flatten(2).transpose(1, 2).unflatten(2, (height, width))


def _relative(size: int, half: int, device: torch.device) -> Tensor:
    """The index of each place in the mask around each pixel, along one side: (size, size)."""
    places = torch.arange(size, device=device)
    return places[:, None] - places + half
