"""CARAFE: a new pixel is a weighted mean of the window around the old one."""

from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import unfold

from .computing import gradients, widened


def carafe_forward(
    features: Tensor,
    masks: Tensor,
    rfeatures: Tensor,
    routput: Tensor,
    rmasks: Tensor,
    output: Tensor,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> None:
    """As `carafe_naive_forward`; rfeatures are the features that mmcv keeps for the gradient."""
    rfeatures.copy_(features)
    carafe_naive_forward(features, masks, output, kernel_size, group_size, scale_factor)


def carafe_backward(
    top_grad: Tensor,
    rfeatures: Tensor,
    masks: Tensor,
    rtop_grad: Tensor,
    rbottom_grad_hs: Tensor,
    rbottom_grad: Tensor,
    rmask_grad: Tensor,
    bottom_grad: Tensor,
    mask_grad: Tensor,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> None:
    """As `carafe_naive_backward`."""
    carafe_naive_backward(
        *(top_grad, rfeatures, masks, bottom_grad, mask_grad),
        *(kernel_size, group_size, scale_factor),
    )


def carafe_naive_forward(
    features: Tensor,
    masks: Tensor,
    output: Tensor,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> None:
    """Reassemble the features of a map, scale_factor times as large.

    Args:
        features: (B, C, H, W), zero outside.
        masks: (B, group_size * kernel_size^2, H * scale_factor, W * scale_factor), the weights.
        output: (B, C, H * scale_factor, W * scale_factor).
        kernel_size: Sides of the window, odd.
        group_size: Number of channel groups with separate weights.
        scale_factor: How often a pixel is repeated along each side.
    """
    options = (kernel_size, group_size, scale_factor)
    output.copy_(_reassembled(*widened(features, masks), *options))


def carafe_naive_backward(
    top_grad: Tensor,
    features: Tensor,
    masks: Tensor,
    bottom_grad: Tensor,
    mask_grad: Tensor,
    kernel_size: int,
    group_size: int,
    scale_factor: int,
) -> None:
    """top_grad, of the output -> bottom_grad and mask_grad, of features and masks."""
    function = partial(_reassembled, kernel_size=kernel_size, groups=group_size, scale=scale_factor)
    into_features, into_masks = gradients(function, widened(features, masks), top_grad)
    bottom_grad.copy_(into_features)
    mask_grad.copy_(into_masks)


def _reassembled(
    features: Tensor, masks: Tensor, kernel_size: int, groups: int, scale: int
) -> Tensor:
    """The (B, C, H * scale, W * scale) of `carafe_naive_forward`."""
    height, width = features.shape[2:]
    windows = unfold(features, kernel_size, padding=(kernel_size - 1) // 2)
    windows = windows.unflatten(2, (height, width))
    windows = windows.unflatten(1, (groups, features.shape[1] // groups, kernel_size**2))
    masks = masks.unflatten(3, (width, scale)).unflatten(2, (height, scale))
    masks = masks.unflatten(1, (groups, kernel_size**2))
    output = torch.einsum('bgckhw,bgkhiwj->bgchiwj', windows, masks)
    return output.reshape(len(features), -1, height * scale, width * scale)
