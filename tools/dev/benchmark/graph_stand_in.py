"""CUDA graphs without CUDA: as dangerous as the real ones, and no faster."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten


class GraphStandIn:
    """Takes the place of ``ptnt_mm.engine.hooks.cuda_graphs.TorchCapture`` on a CPU.

    A function is run three times to warm up. From then on it computes in the memory of its samples;
    outputs, gradients and what the backward pass needs are overwritten by the next run. Without
    gradients, it has only a forward pass.

    Args:
        share: The share of the device's memory that each capture seems to take.

    Attributes:
        sizes: The shape of the first input of each capture.
        held: The sum of their shares.
    """

    def __init__(self, share: float = 0.0):
        self.sizes: list[tuple[int, ...]] = []
        self.share, self.held = share, 0.0

    def clear(self) -> None:
        """As if all memory had been given back."""
        self.held = 0.0

    def __call__(self, function: Callable, samples: tuple[Tensor, ...]) -> Callable:
        """The function as a stand-in for a graph."""
        self.sizes.append(tuple(samples[0].shape))
        self.held += self.share
        trains = torch.is_grad_enabled()
        for _ in range(3):
            outputs, structure = tree_flatten(function(*samples))
        outputs = [output.detach().clone() for output in outputs]
        needed = [sample for sample in samples if sample.requires_grad]
        grads = [torch.empty_like(sample) for sample in needed]
        last = {}

        class Replay(torch.autograd.Function):
            @staticmethod
            def forward(ctx, *inputs):
                for sample, given in zip(samples, inputs, strict=True):
                    if sample.data_ptr() != given.data_ptr():
                        sample.copy_(given)
                with torch.set_grad_enabled(trains):
                    last['computed'] = tree_flatten(function(*samples))[0]
                for output, new in zip(outputs, last['computed'], strict=True):
                    output.copy_(new)
                return tuple(output.detach() for output in outputs)

            @staticmethod
            def backward(ctx, *given):
                found = torch.autograd.grad(last['computed'], needed, given, allow_unused=True)
                for grad, new in zip(grads, found, strict=True):
                    grad.copy_(new)
                results = iter(grads)
                return tuple(next(results).detach() if s.requires_grad else None for s in samples)

        return lambda *inputs: tree_unflatten(list(Replay.apply(*inputs)), structure)
