"""Count what a GPU would do: kernel launches, bytes and multiply-adds, without a GPU.

Parts of a network run on the meta device, where tensors have shapes and no memory, in the code
path of a GPU. Every operator that computes something counts as one launch, which reads its inputs
and writes its outputs once; views and allocations count as nothing. A fused attention is one launch
in each direction.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from ptnt_mm.models import PyramidTNT

_ALLOCATIONS = {'empty', 'empty_like', 'empty_strided', 'new_empty', 'new_empty_strided'}
_NO_KERNEL = {*_ALLOCATIONS, '_unsafe_view', '_reshape_alias', 'is_same_size', 'lift_fresh'}


@dataclass
class Count:
    """Sums over kernels."""

    launches: int = 0
    bytes: int = 0
    multiply_adds: int = 0

    def __add__(self, other: 'Count') -> 'Count':
        sums = (self.launches + other.launches, self.bytes + other.bytes)
        return Count(*sums, self.multiply_adds + other.multiply_adds)

    def add_kernel(self, tensors: tuple, multiply_adds: int) -> None:
        """Add one launch.

        Args:
            tensors: Its inputs and outputs, nested in any way.
            multiply_adds: Of its products.
        """
        self.launches += 1
        self.bytes += sum(_stored_bytes(x) for x in tree_leaves(tensors) if isinstance(x, Tensor))
        self.multiply_adds += multiply_adds


def _stored_bytes(tensor: Tensor) -> int:
    """Size of a tensor's numbers; those that an expanded axis repeats are read once."""
    sides = (
        1 if step == 0 else side for side, step in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return torch.Size(sides).numel() * tensor.element_size()


class _CountKernels(TorchDispatchMode):
    """Add each operator to a count, forward and backward."""

    def __init__(self, count: Count):
        super().__init__()
        self.count = count

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = operator(*args, **kwargs)
        packet = operator.overloadpacket
        if packet is torch.ops.aten.convolution and _is_channels_last(args[0]):
            # A GPU keeps the order of the axes, and the meta device does not.
            out = out.to(memory_format=torch.channels_last)
        if not operator.is_view and packet.__name__ not in _NO_KERNEL:
            formula = flop_registry.get(packet)
            operations = formula(*args, **kwargs, out_val=out) if formula else 0
            self.count.add_kernel((args, kwargs, out), operations // 2)
        return out


def _is_channels_last(feature: Tensor) -> bool:
    return feature.is_contiguous(memory_format=torch.channels_last)


class _OneKernel(torch.autograd.Function):
    """Fused attention, which the meta device would take apart: shapes and counts alone."""

    @staticmethod
    def forward(ctx, q, k, v, count):
        ctx.count, ctx.products = count, q[..., 0].numel() * k.shape[-2]
        ctx.save_for_backward(q, k, v)
        batch, heads, tokens, _ = q.shape
        out = q.new_empty(batch, tokens, heads, v.shape[-1]).transpose(1, 2)
        count.add_kernel((q, k, v, out), ctx.products * (q.shape[-1] + v.shape[-1]))
        return out

    @staticmethod
    def backward(ctx, grad):
        q, k, v = ctx.saved_tensors
        grads = tuple(torch.empty_like(x) for x in (q, k, v))
        # The weights once more, then the gradients of the weights, values, queries and keys.
        ctx.count.add_kernel(
            (q, k, v, grad, grads), ctx.products * (3 * q.shape[-1] + 2 * v.shape[-1])
        )
        return *grads, None


class _FusedAttention(TorchFunctionMode):
    """Replace torch's fused attention by one kernel."""

    def __init__(self, count: Count):
        super().__init__()
        self.count = count

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is F.scaled_dot_product_attention:
            return _OneKernel.apply(*args[:3], self.count)
        return function(*args, **(kwargs or {}))


def count_forward(part: Callable, inputs: tuple) -> Count:
    """Count the kernels of a forward pass in evaluation mode."""
    count = Count()
    with torch.no_grad(), _FusedAttention(count), _CountKernels(count):
        part(*inputs)
    return count


def count_step(part: Callable, inputs: tuple) -> Count:
    """Count the kernels of a forward and a backward pass, with gradients of all inputs."""
    count = Count()
    inputs = [x.detach().requires_grad_() if isinstance(x, Tensor) else x for x in inputs]
    with _FusedAttention(count), _CountKernels(count):
        outputs = [x for x in tree_leaves(part(*inputs)) if isinstance(x, Tensor)]
    grads = [torch.empty_like(output) for output in outputs]
    with _FusedAttention(count), _CountKernels(count):
        torch.autograd.backward(outputs, grads)
    return count


def parts_of(model: PyramidTNT, image: Tensor) -> Iterator[tuple[str, nn.Module, tuple]]:
    """The name of each part, the module, and its inputs for an image (B, 3, H, W)."""
    recorded = []

    def record(name: str) -> Callable:
        return lambda module, inputs: recorded.append((name, module, inputs))

    handles = [model.patch_embed.register_forward_pre_hook(record('stem'))]
    for number, stage in enumerate(model.stages, 1):
        handles.append(stage.register_forward_pre_hook(record(f'stage {number}')))
    for number, merges in enumerate(zip(model.word_merges, model.sentence_merges, strict=True), 1):
        handles += [merge.register_forward_pre_hook(record(f'merge {number}')) for merge in merges]
    with torch.no_grad(), _CountKernels(Count()):  # for the order of axes of a GPU
        model(image)
    for handle in handles:
        handle.remove()
    yield from recorded
