"""How blocks save memory, and with it time, without changing a result (ours).

On a CPU, intermediate tensors that do not fit into the cache are written to memory and read back.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

SLICE_BYTES = 4 * 2**20
"""Size of a slice's widest intermediate tensor (measured, see ``docs/research/performance.md``)."""

RECOMPUTE_BYTES = 40 * 2**20
"""Widest intermediate tensor that is kept for the backward pass and not recomputed."""

# Private to torch, and unchanged since torch 2.6 at least.
transforms_active = getattr(torch._C, '_are_functorch_transforms_active', lambda: True)
"""Whether torch.func (grad, vmap, jvp) is at work; it supports no recomputation."""


def run_block(block: nn.Module, with_cp: bool, *inputs: Any) -> Any:
    """Call a block; with ``with_cp``, recompute its activations in the backward pass."""
    if not with_cp or not torch.is_grad_enabled() or torch.jit.is_tracing():
        return block(*inputs)
    if transforms_active() and not torch.compiler.is_compiling():
        return block(*inputs)
    return checkpoint(block, *inputs, use_reentrant=False)


def in_slices(function: Callable[[Tensor], Tensor], rows: Tensor, width: int) -> Tensor:
    """Apply a function with independent rows, slice by slice where that is faster.

    It is faster on a CPU. With gradients, only the largest are sliced, and recomputed in the
    backward pass: keeping the others takes more memory, but a tenth less time. A GPU and compiled
    code do not need it.

    Args:
        function: (n, ...) -> (n, ...), for any number n of rows.
        rows: Input of the function, (N, ...).
        width: Numbers per row in the function's widest intermediate tensor.
    """
    row_bytes = width * rows.element_size()
    if _stays_whole(rows) or len(rows) * row_bytes <= _whole_bytes():
        return function(rows)
    parts = rows.split(max(1, SLICE_BYTES // row_bytes))
    if torch.is_grad_enabled():
        return torch.cat([checkpoint(function, part, use_reentrant=False) for part in parts])
    return torch.cat([function(part) for part in parts])


def _stays_whole(rows: Tensor) -> bool:
    """Whether slicing does not help; a traced graph would be fixed to this number of rows."""
    if rows.device.type != 'cpu' or torch.compiler.is_compiling() or torch.jit.is_tracing():
        return True
    return transforms_active()


def _whole_bytes() -> int:
    """Size up to which an intermediate tensor is not sliced."""
    return RECOMPUTE_BYTES if torch.is_grad_enabled() else SLICE_BYTES
