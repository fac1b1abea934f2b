"""The arithmetic operators of a pass, and how long each takes alone."""

import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from ptnt_mm.models.layers.biased_attention import OPERATORS

_NAMES = {
    'matrix products': ('mm', 'addmm', 'bmm', 'baddbmm', 'matmul'),
    'fused attention': (
        '_scaled_dot_product_flash_attention_for_cpu',
        '_scaled_dot_product_flash_attention_for_cpu_backward',
    ),
    'convolutions': ('convolution', 'convolution_backward'),
    'softmax, GELU, norms, pooling': (
        *('exp', '_softmax', '_softmax_backward_data', 'gelu', 'gelu_backward'),
        *('native_layer_norm', 'native_layer_norm_backward'),
        *('native_batch_norm', 'native_batch_norm_backward', 'relu', 'threshold_backward'),
        *('avg_pool2d', 'avg_pool2d_backward', 'upsample_bicubic2d'),
    ),
    'sums': ('add', 'sub', 'mul', 'div', 'sum', 'mean'),
}
_KINDS = {name: kind for kind, names in _NAMES.items() for name in names}
KINDS = tuple(_NAMES)
"""What operators do. All others move, copy or allocate, which arithmetic alone would not need."""

_BUDGET = 0.03
"""Seconds for the repetitions of one operator in one round."""


@dataclass(frozen=True)
class _Layout:
    """What stands for a tensor: its values do not matter."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def of(cls, tensor: Tensor) -> '_Layout':
        return cls(tuple(tensor.shape), tensor.stride(), tensor.dtype)

    def new(self) -> Tensor:
        """A tensor of this layout; small numbers, but none so small that a processor slows down."""
        places = zip(self.shape, self.strides, strict=True)
        length = 1 + sum((size - 1) * stride for size, stride in places)
        values = torch.rand(length).add_(0.5).mul_(0.1).to(self.dtype)
        return values.as_strided(self.shape, self.strides)


@dataclass(frozen=True)
class Call:
    """An operator and what it is called with, tensors by their layout."""

    operator: Callable
    args: tuple
    kwargs: dict[str, Any]

    @property
    def kind(self) -> str | None:
        """One of :data:`KINDS`, or None for what only moves or allocates."""
        name = self.operator.overloadpacket.__name__
        return _KINDS.get(name.removesuffix('_'))

    def seconds(self) -> float:
        """The median time over some repetitions, its inputs in memory that was used before.

        What it changes in place is laid out anew before each, outside the time.
        """
        args, kwargs = tree_map_only(_Layout, _Layout.new, (self.args, self.kwargs))
        changed = [args[0]] if self.operator._schema.is_mutable else []
        values = [tensor.clone() for tensor in changed]
        found = []
        end = time.perf_counter() + _BUDGET
        while len(found) < 3 or time.perf_counter() < end:
            for tensor, before in zip(changed, values, strict=True):
                tensor.copy_(before)
            start = time.perf_counter()
            result = self.operator(*args, **kwargs)
            found.append(time.perf_counter() - start)
            del result
        return statistics.median(found)


class Operations(TorchDispatchMode):
    """Counts the arithmetic operators of what runs in its context, own ones looked into."""

    def __init__(self):
        super().__init__()
        self._calls: dict[str, list[Call]] = defaultdict(list)

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        """Run an operator, and remember it."""
        if operator in OPERATORS:
            with self:
                return OPERATORS[operator](*args)
        layouts = tree_map_only(Tensor, _Layout.of, (args, kwargs or {}))
        call = Call(operator, *layouts)
        if call.kind:
            self._calls[f'{operator} {layouts}'].append(call)
        return operator(*args, **(kwargs or {}))

    def seconds(self) -> dict[str, float]:
        """How long they take alone, by kind."""
        total = dict.fromkeys(KINDS, 0.0)
        for alike in self._calls.values():
            total[alike[0].kind] += len(alike) * alike[0].seconds()
        return total

    def counts(self) -> dict[str, int]:
        """How many there are, by kind."""
        total = dict.fromkeys(KINDS, 0)
        for alike in self._calls.values():
            total[alike[0].kind] += len(alike)
        return total
