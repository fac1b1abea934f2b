"""Computation in slices that stay in the processor's cache."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

SLICE_BYTES = 4 * 2**20
"""Size of a slice's widest intermediate tensor (measured, see ``docs/performance.md``)."""

RECOMPUTE_BYTES = 40 * 2**20
"""Widest intermediate tensor that is kept for the backward pass and not recomputed."""


def in_slices(
    function: Callable[[Tensor], tuple[Tensor, ...]], rows: Tensor, width: int
) -> tuple[Tensor, ...]:
    """Apply a function with independent rows, slice by slice where that is faster.

    It is faster on a CPU: the full intermediate tensors would be written to memory and read back,
    into pages that are new to the process in every pass. With gradients, only the largest are
    sliced, and recomputed in the backward pass: keeping the others takes more memory, but a tenth
    less time. A GPU and compiled code do not need it.

    Args:
        function: (n, ...) -> tensors (n, ...), for any number n of rows.
        rows: Input of the function, (N, ...).
        width: Numbers per row in the function's widest intermediate tensor.
    """
    row_bytes = width * rows.element_size()
    if _stays_whole(rows) or len(rows) * row_bytes <= _whole_bytes():
        return function(rows)
    parts = rows.split(max(1, SLICE_BYTES // row_bytes))
    if torch.is_grad_enabled():
        results = [checkpoint(function, part, use_reentrant=False) for part in parts]
    else:
        results = [function(part) for part in parts]
    return tuple(torch.cat(column) for column in zip(*results, strict=True))


def _stays_whole(rows: Tensor) -> bool:
    """Whether slicing does not help; a traced graph would be fixed to this number of rows."""
    return rows.device.type != 'cpu' or torch.compiler.is_compiling() or torch.jit.is_tracing()


def _whole_bytes() -> int:
    """Size up to which an intermediate tensor is not sliced."""
    return RECOMPUTE_BYTES if torch.is_grad_enabled() else SLICE_BYTES
