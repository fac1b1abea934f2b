"""Convolutions at moved points, at chosen ones, and with turned filters."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from .computing import widened

_ops = torch.ops.torchvision

# mmcv's names for torchvision's last arguments, in its order; mmcv passes them by name.
_PLAIN = ('dH', 'dW', 'padH', 'padW', 'dilationH', 'dilationW', 'group', 'deformable_group')
_MODULATED = (
    *('stride_h', 'stride_w', 'pad_h', 'pad_w', 'dilation_h', 'dilation_w'),
    *('group', 'deformable_group'),
)


def deform_conv_forward(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    output: Tensor,
    columns: Tensor,
    ones: Tensor,
    **sizes: int,
) -> None:
    """Input (B, C, H, W), weight (D, C / group, kH, kW), offset -> output (B, D, h, w).

    The offset (B, 2 * deformable_group * kH * kW, h, w) holds y and x in turn.
    """
    tensors = _unmasked(input, weight, offset)
    output.copy_(_ops.deform_conv2d(*tensors, *_in_order(sizes, _PLAIN), False))


def deform_conv_backward_input(
    input: Tensor,
    offset: Tensor,
    gradOutput: Tensor,
    gradInput: Tensor,
    gradOffset: Tensor,
    weight: Tensor,
    columns: Tensor,
    **sizes: int,
) -> None:
    """GradOutput (B, D, h, w) -> gradInput and gradOffset, in the shapes of input and offset.

    torchvision also computes the weight's gradient. It is stored in columns, mmcv's scratch memory,
    for `deform_conv_backward_parameters`, which is called next.
    """
    into_input, into_weight, into_offset, *_ = _unmasked_backward(
        gradOutput, input, weight, offset, sizes
    )
    gradInput.copy_(into_input)
    gradOffset.copy_(into_offset)
    columns.resize_(weight.shape).copy_(into_weight)


def deform_conv_backward_parameters(
    input: Tensor,
    offset: Tensor,
    gradOutput: Tensor,
    gradWeight: Tensor,
    columns: Tensor,
    ones: Tensor,
    scale: float,
    **sizes: int,
) -> None:
    """GradOutput (B, D, h, w) -> gradWeight (D, C / group, kH, kW)."""
    if columns.numel():
        gradWeight.copy_(columns).mul_(scale)
        return
    # Neither input nor offset needed a gradient; the weight's own values do not matter for its.
    _, into_weight, *_ = _unmasked_backward(gradOutput, input, gradWeight, offset, sizes)
    gradWeight.copy_(into_weight).mul_(scale)


def _unmasked(input: Tensor, weight: Tensor, offset: Tensor) -> list[Tensor]:
    """The arguments of torchvision's operator up to the bias, without mask and bias."""
    input, weight, offset = widened(input, weight, offset)
    return [input, weight, offset, input.new_zeros(len(input), 1), input.new_zeros(len(weight))]


def _unmasked_backward(
    grad_output: Tensor, input: Tensor, weight: Tensor, offset: Tensor, sizes: Mapping[str, int]
) -> Sequence[Tensor]:
    """Gradients of input, weight, offset, and two that are not used."""
    tensors = _unmasked(input, weight, offset)
    grad_output = grad_output.to(tensors[0].dtype)
    order = _in_order(sizes, _PLAIN)
    found = _ops._deform_conv2d_backward(grad_output, *tensors, *order, False)
    _zero_on_edge(found[2], tensors[2], weight.shape[2:], order)
    return found


def _in_order(sizes: Mapping[str, int], names: Sequence[str]) -> list[int]:
    return [sizes[name] for name in names]


def _zero_on_edge(
    into_offset: Tensor, offset: Tensor, kernel: Sequence[int], order: Sequence[int]
) -> None:
    """Zero the offset gradient of sampling points whose row or column is exactly -1, in place.

    A map fades to 0 between row 0 and row -1, so its slope at -1 is one-sided: mmcv uses the one
    from outside, which is 0, torchvision the one from inside. New layers have offsets of 0, so with
    padding their entire border is affected.

    Args:
        into_offset: Gradient of the offset, contiguous, (B, 2 * deformable_group * kH * kW, h, w).
        offset: Offset in the same shape, in the type that the points were computed in.
        kernel: kH and kW.
        order: Stride, padding and dilation, rows before columns, and torchvision's other arguments.
    """
    moves = offset.unflatten(1, (-1, *kernel, 2))  # (B, groups, kH, kW, 2, h, w)
    rows, columns = (
        _unmoved(kernel[axis], offset.shape[2 + axis], *order[axis:6:2], offset.device)
        for axis in (0, 1)
    )
    rows, columns = rows[:, None, :, None], columns[:, None]  # (kH, 1, h, 1) and (kW, 1, w)
    is_on_edge = (moves[:, :, :, :, 0] + rows == -1) | (moves[:, :, :, :, 1] + columns == -1)
    into_offset.view(moves.shape).masked_fill_(is_on_edge[:, :, :, :, None], 0)


def _unmoved(
    taps: int, outputs: int, stride: int, padding: int, dilation: int, device: torch.device
) -> Tensor:
    """Coordinates of the taps of each output without offsets, along one axis: (taps, outputs)."""
    starts = stride * torch.arange(outputs, device=device) - padding
    return dilation * torch.arange(taps, device=device)[:, None] + starts


def modulated_deform_conv_forward(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    ones: Tensor,
    offset: Tensor,
    mask: Tensor,
    output: Tensor,
    columns: Tensor,
    with_bias: bool,
    **sizes: int,
) -> None:
    """As `deform_conv_forward`, times the mask (B, deformable_group * kH * kW, h, w), plus bias."""
    tensors = _modulated(input, weight, offset, mask, bias, with_bias, output.shape[2:])
    output.copy_(_ops.deform_conv2d(*tensors, *_in_order(sizes, _MODULATED), True))


def modulated_deform_conv_backward(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    ones: Tensor,
    offset: Tensor,
    mask: Tensor,
    columns: Tensor,
    grad_input: Tensor,
    grad_weight: Tensor,
    grad_bias: Tensor,
    grad_offset: Tensor,
    grad_mask: Tensor,
    grad_output: Tensor,
    with_bias: bool,
    **sizes: int,
) -> None:
    """grad_output (B, D, h, w) -> the gradient of each input, in its shape."""
    size = grad_output.shape[2:]
    tensors = _modulated(input, weight, offset, mask, bias, with_bias, size)
    grad_output = grad_output.to(tensors[0].dtype)
    order = _in_order(sizes, _MODULATED)
    found = _ops._deform_conv2d_backward(grad_output, *tensors, *order, True)
    _zero_on_edge(found[2], tensors[2], weight.shape[2:], order)
    grad_input.copy_(found[0])
    grad_weight.copy_(found[1])
    _as_read(grad_offset, size).copy_(found[2])
    _as_read(grad_mask, size).copy_(found[3])
    if with_bias:
        grad_bias.copy_(found[4])


def _modulated(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    mask: Tensor,
    bias: Tensor,
    with_bias: bool,
    size: tuple[int, int],
) -> list[Tensor]:
    """The arguments of torchvision's operator up to the bias, which is zero if there is none."""
    bias = bias if with_bias else weight.new_zeros(len(weight))
    return widened(input, weight, _as_read(offset, size), _as_read(mask, size), bias)


def _as_read(moves: Tensor, size: tuple[int, int]) -> Tensor:
    """The part of offsets or masks that mmcv reads, as a view (B, C, h, w).

    The DyHead of mmdet passes those of a larger level. mmcv ignores their height and width and
    reads as many numbers as it needs from the start of each image; the published weights were
    trained like this.
    """
    if moves.shape[2:] == size:
        return moves
    channels, (height, width) = moves.shape[1], size
    return moves.view(len(moves), -1)[:, : channels * height * width].unflatten(
        1, (channels, height, width)
    )


def masked_im2col_forward(
    im: Tensor,
    mask_h_idx: Tensor,
    mask_w_idx: Tensor,
    col: Tensor,
    kernel_h: int,
    kernel_w: int,
    pad_h: int,
    pad_w: int,
) -> None:
    """Collect the windows of a map (1, C, H, W) at M places -> col (C * kernel_h * kernel_w, M)."""
    rows = torch.arange(kernel_h, device=im.device)[:, None, None] + mask_h_idx
    columns = torch.arange(kernel_w, device=im.device)[:, None] + mask_w_idx
    col.copy_(pad(im[0], (pad_w, pad_w, pad_h, pad_h))[:, rows, columns].flatten(0, 2))


def masked_col2im_forward(
    col: Tensor,
    mask_h_idx: Tensor,
    mask_w_idx: Tensor,
    im: Tensor,
    height: int,
    width: int,
    channels: int,
) -> None:
    """Put M columns (C, M) into their places in a map (1, C, height, width)."""
    im[0][:, mask_h_idx, mask_w_idx] = col.to(im.dtype)


def active_rotated_filter_forward(input: Tensor, indices: Tensor, output: Tensor) -> None:
    """Turn filters: input (D, C, O, h, w) -> output (D * R, C * O, h, w).

    Indices (O, h, w, R), from 1 on, tell where each rotation puts a weight among the O * h * w.
    """
    places = _places(indices)
    turned = output.view(len(input), len(places), input.shape[1], -1)
    turned.scatter_(3, places.expand_as(turned), input.flatten(2)[:, None].expand_as(turned))


def active_rotated_filter_backward(grad_out: Tensor, indices: Tensor, grad_in: Tensor) -> None:
    """grad_out (D * R, C * O, h, w) -> grad_in (D, C, O, h, w)."""
    places = _places(indices)
    turned = grad_out.reshape(len(grad_in), len(places), grad_in.shape[1], -1)
    grad_in.copy_(turned.gather(3, places.expand_as(turned)).sum(1).view_as(grad_in))


def _places(indices: Tensor) -> Tensor:
    """(O, h, w, R) from 1 on -> (R, 1, O * h * w) from 0 on."""
    return indices.flatten(0, 2).T[:, None].long() - 1
