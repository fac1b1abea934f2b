"""The focal losses, and the distance between sets of points.

The focal losses have one sample per row; the label -1 or num_classes means no class.
"""

import torch
from torch import Tensor

from .computing import widened

_SMALLEST = torch.finfo(torch.float32).tiny


def sigmoid_focal_loss_forward(
    input: Tensor, target: Tensor, weight: Tensor, output: Tensor, gamma: float, alpha: float
) -> None:
    """Logits (N, C), target (N,), weight (C,) or empty -> output (N, C)."""
    (logits,) = widened(input)
    p, q = logits.sigmoid(), (-logits).sigmoid()
    positive = alpha * q.pow(gamma) * p.clamp(min=_SMALLEST).log()
    negative = (1 - alpha) * p.pow(gamma) * q.clamp(min=_SMALLEST).log()
    output.copy_(-torch.where(_is_class(logits, target), positive, negative))
    _weigh(output, target, weight)


def sigmoid_focal_loss_backward(
    input: Tensor, target: Tensor, weight: Tensor, grad_input: Tensor, gamma: float, alpha: float
) -> None:
    """Logits (N, C), target (N,), weight (C,) or empty -> grad_input (N, C) of the losses' sum."""
    (logits,) = widened(input)
    p, q = logits.sigmoid(), (-logits).sigmoid()
    positive = alpha * q.pow(gamma) * (q - gamma * p * p.clamp(min=_SMALLEST).log())
    negative = (1 - alpha) * p.pow(gamma) * (gamma * q * q.clamp(min=_SMALLEST).log() - p)
    grad_input.copy_(-torch.where(_is_class(logits, target), positive, negative))
    _weigh(grad_input, target, weight)


def softmax_focal_loss_forward(
    input: Tensor, target: Tensor, weight: Tensor, output: Tensor, gamma: float, alpha: float
) -> None:
    """Probabilities (N, C), target (N,), weight (C,) or empty -> output (N,)."""
    p = _of_target(input, target)
    output.copy_(-alpha * (1 - p).pow(gamma) * p.clamp(min=_SMALLEST).log())
    _weigh(output, target, weight)


def softmax_focal_loss_backward(
    input: Tensor,
    target: Tensor,
    weight: Tensor,
    buff: Tensor,
    grad_input: Tensor,
    gamma: float,
    alpha: float,
) -> None:
    """Probabilities (N, C) -> grad_input (N, C), of the losses' sum by the logits; buff is (N,)."""
    p = _of_target(input, target)
    q = (1 - p).clamp(min=_SMALLEST)  # its power gamma - 1 may be negative
    slope = gamma * q.pow(gamma - 1) * p * p.clamp(min=_SMALLEST).log() - q.pow(gamma)
    buff.copy_(alpha * slope)
    _weigh(buff, target, weight)
    is_class = _is_class(input, target)
    grad_input.copy_(buff[:, None] * (is_class.to(input.dtype) - input))
    grad_input.mul_(is_class.any(1, keepdim=True))


def _of_target(probabilities: Tensor, target: Tensor) -> Tensor:
    """Each row's probability of its label, or 1 without a label, so that the loss is 0."""
    (wide,) = widened(probabilities)
    p = wide.gather(1, target.clamp(0, wide.shape[1] - 1)[:, None]).squeeze(1)
    return torch.where((target >= 0) & (target < wide.shape[1]), p, 1)


def _is_class(logits: Tensor, target: Tensor) -> Tensor:
    """(N, C): whether the column is the row's label."""
    return target[:, None] == torch.arange(logits.shape[1], device=logits.device)


def _weigh(values: Tensor, target: Tensor, weight: Tensor) -> None:
    """Multiply each row by its label's weight; a row of no class has none."""
    if weight.numel():
        is_class = (target >= 0) & (target < len(weight))
        weights = weight[target.clamp(0, len(weight) - 1)].where(is_class, 1)
        values.mul_(weights.unsqueeze(-1) if values.dim() > 1 else weights)


def chamfer_distance_forward(
    xyz1: Tensor, xyz2: Tensor, dist1: Tensor, dist2: Tensor, idx1: Tensor, idx2: Tensor
) -> None:
    """Squared distance of each point to the nearest of the other set, and which one that is.

    The points are (B, N, 2) and (B, M, 2), the results (B, N) and (B, M).
    """
    first, second = widened(xyz1, xyz2)
    squares = (first[:, :, None] - second[:, None]).square().sum(-1)
    for dim, distance, index in ((2, dist1, idx1), (1, dist2, idx2)):
        nearest = squares.min(dim)
        distance.copy_(nearest.values)
        index.copy_(nearest.indices)


def chamfer_distance_backward(
    xyz1: Tensor,
    xyz2: Tensor,
    idx1: Tensor,
    idx2: Tensor,
    graddist1: Tensor,
    graddist2: Tensor,
    gradxyz1: Tensor,
    gradxyz2: Tensor,
) -> None:
    """Gradients of the distances, (B, N) and (B, M) -> of the points, which start as zero."""
    ways = (
        (xyz1, xyz2, idx1, graddist1, gradxyz1, gradxyz2),
        (xyz2, xyz1, idx2, graddist2, gradxyz2, gradxyz1),
    )
    for start, end, index, grad, into_start, into_end in ways:
        index = index[..., None].long().expand_as(start)
        step = 2 * grad[..., None] * (start - end.gather(1, index))
        into_start.add_(step)
        into_end.scatter_add_(1, index, -step)
