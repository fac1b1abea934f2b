"""The parts of mmcv's SyncBatchNorm between its exchanges with the other processes.

Maps are (B, C, H * W); mean, var, std, weight, bias and their gradients (C,), in float32.
"""

from torch import Tensor


def sync_bn_forward_mean(input: Tensor, mean: Tensor) -> None:
    """Fill in the mean of each channel in this process."""
    mean.copy_(input.float().mean((0, 2)))


def sync_bn_forward_var(input: Tensor, mean: Tensor, var: Tensor) -> None:
    """Fill in the variance of each channel in this process around the common mean."""
    var.copy_((input.float() - mean[:, None]).square().mean((0, 2)))


def sync_bn_forward_output(
    input: Tensor,
    mean: Tensor,
    var: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    norm: Tensor,
    std: Tensor,
    output: Tensor,
    eps: float,
    momentum: float,
    group_size: int,
) -> None:
    """Normalise into norm and output, keep std, and move the running statistics."""
    std.copy_((var + eps).sqrt())
    norm.copy_((input.float() - mean[:, None]) / std[:, None])
    output.copy_(norm if weight is None else norm * weight[:, None] + bias[:, None])
    if running_mean is not None:
        count = input.shape[0] * input.shape[2] * group_size
        running_mean.lerp_(mean, float(momentum))
        running_var.lerp_(var * (count / max(count - 1, 1)), float(momentum))


def sync_bn_backward_param(
    grad_output: Tensor, norm: Tensor, grad_weight: Tensor, grad_bias: Tensor
) -> None:
    """Fill in the gradients of weight and bias in this process."""
    grad_weight.copy_((grad_output.float() * norm).sum((0, 2)))
    grad_bias.copy_(grad_output.float().sum((0, 2)))


def sync_bn_backward_data(
    grad_output: Tensor,
    weight: Tensor,
    grad_weight: Tensor,
    grad_bias: Tensor,
    norm: Tensor,
    std: Tensor,
    grad_input: Tensor,
) -> None:
    """Fill in the gradient of the input, from the mean gradients of all processes."""
    count = norm.shape[0] * norm.shape[2]
    through_statistics = (grad_weight[:, None] * norm + grad_bias[:, None]) / count
    grad_input.copy_((grad_output.float() - through_statistics) * (weight / std)[:, None])
