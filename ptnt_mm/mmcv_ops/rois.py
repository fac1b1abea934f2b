"""Pooling regions of interest: rois are (N, 5), the image's index in the batch and a box."""

import torch
from torch import Tensor

from .computing import widened

_ops = torch.ops.torchvision


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
    """Input (B, C, H, W), rois (N, 5) -> output (N, C, aligned_height, aligned_width)."""
    input, rois = widened(input, rois)
    size = (aligned_height, aligned_width)
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
    """grad_output (N, C, h, w) -> grad_input (B, C, H, W)."""
    grad_output, rois = widened(grad_output, rois)
    size = (aligned_height, aligned_width)
    grad_input.copy_(
        _ops._roi_align_backward(
            grad_output, rois, spatial_scale, *size, *grad_input.shape, sampling_ratio, aligned
        )
    )
