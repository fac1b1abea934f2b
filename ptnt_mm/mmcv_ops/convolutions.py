"""Convolutions at moved points, and at chosen ones."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from .computing import widened

_ops = torch.ops.torchvision


def deform_conv_forward(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    output: Tensor,
    columns: Tensor,
    ones: Tensor,
    kW: int,
    kH: int,
    dW: int,
    dH: int,
    padW: int,
    padH: int,
    dilationW: int,
    dilationH: int,
    group: int,
    deformable_group: int,
    im2col_step: int,
) -> None:
    """Input (B, C, H, W), weight (D, C / group, kH, kW), offset -> output (B, D, h, w).

    The offset (B, 2 * deformable_group * kH * kW, h, w) holds y and x in turn.
    """
    geometry = (dH, dW, padH, padW, dilationH, dilationW, group, deformable_group)
    output.copy_(_ops.deform_conv2d(*_unmasked(input, weight, offset), *geometry, False))


def deform_conv_backward_input(
    input: Tensor,
    offset: Tensor,
    gradOutput: Tensor,
    gradInput: Tensor,
    gradOffset: Tensor,
    weight: Tensor,
    columns: Tensor,
    kW: int,
    kH: int,
    dW: int,
    dH: int,
    padW: int,
    padH: int,
    dilationW: int,
    dilationH: int,
    group: int,
    deformable_group: int,
    im2col_step: int,
) -> None:
    """GradOutput (B, D, h, w) -> gradInput and gradOffset, in the shapes of input and offset.

    torchvision finds the weight's gradient along with them. It is left in columns, mmcv's scratch
    memory, for `deform_conv_backward_parameters`, which comes next.
    """
    geometry = (dH, dW, padH, padW, dilationH, dilationW, group, deformable_group)
    into_input, into_weight, into_offset, *_ = _unmasked_backward(
        gradOutput, input, weight, offset, geometry
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
    kW: int,
    kH: int,
    dW: int,
    dH: int,
    padW: int,
    padH: int,
    dilationW: int,
    dilationH: int,
    group: int,
    deformable_group: int,
    scale: float,
    im2col_step: int,
) -> None:
    """GradOutput (B, D, h, w) -> gradWeight (D, C / group, kH, kW)."""
    if columns.numel():
        gradWeight.copy_(columns).mul_(scale)
        return
    # Neither input nor offset needed a gradient; the weight's own values do not matter for its.
    geometry = (dH, dW, padH, padW, dilationH, dilationW, group, deformable_group)
    _, into_weight, *_ = _unmasked_backward(gradOutput, input, gradWeight, offset, geometry)
    gradWeight.copy_(into_weight).mul_(scale)


def _unmasked(input: Tensor, weight: Tensor, offset: Tensor) -> list[Tensor]:
    """What torchvision takes up to the bias, with neither mask nor bias."""
    input, weight, offset = widened(input, weight, offset)
    return [input, weight, offset, input.new_zeros(len(input), 1), input.new_zeros(len(weight))]


def _unmasked_backward(
    grad_output: Tensor, input: Tensor, weight: Tensor, offset: Tensor, geometry: Sequence[int]
) -> Sequence[Tensor]:
    """Gradients of input, weight, offset, and two of no use."""
    tensors = _unmasked(input, weight, offset)
    grad_output = grad_output.to(tensors[0].dtype)
    return _ops._deform_conv2d_backward(grad_output, *tensors, *geometry, False)


def modulated_deform_conv_forward(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    ones: Tensor,
    offset: Tensor,
    mask: Tensor,
    output: Tensor,
    columns: Tensor,
    kernel_h: int,
    kernel_w: int,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    group: int,
    deformable_group: int,
    with_bias: bool,
) -> None:
    """As `deform_conv_forward`, times the mask (B, deformable_group * kH * kW, h, w), plus bias."""
    geometry = (stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, group, deformable_group)
    tensors = widened(input, weight, offset, mask, _bias(bias, weight, with_bias))
    output.copy_(_ops.deform_conv2d(*tensors, *geometry, True))


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
    kernel_h: int,
    kernel_w: int,
    stride_h: int,
    stride_w: int,
    pad_h: int,
    pad_w: int,
    dilation_h: int,
    dilation_w: int,
    group: int,
    deformable_group: int,
    with_bias: bool,
) -> None:
    """grad_output (B, D, h, w) -> the gradient of each input, in its shape."""
    geometry = (stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, group, deformable_group)
    tensors = widened(grad_output, input, weight, offset, mask, _bias(bias, weight, with_bias))
    found = _ops._deform_conv2d_backward(*tensors, *geometry, True)
    wanted = (grad_input, grad_weight, grad_offset, grad_mask)
    if with_bias:
        wanted += (grad_bias,)
    for target, gradient in zip(wanted, found, strict=False):
        target.copy_(gradient)


def _bias(bias: Tensor, weight: Tensor, with_bias: bool) -> Tensor:
    """The bias (D,), zeros if there is none."""
    return bias if with_bias else weight.new_zeros(len(weight))


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
