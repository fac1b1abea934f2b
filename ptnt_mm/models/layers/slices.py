"""Work on slices that stay in a processor's cache."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

SLICE_BYTES = 4 * 2**20
"""Size of a slice's widest intermediate tensor (measured, see ``docs/performance.md``)."""

RECOMPUTE_BYTES = 40 * 2**20
"""Widest intermediate tensor that is kept for the backward pass rather than made again."""


def in_slices(
    function: Callable[[Tensor], tuple[Tensor, ...]], rows: Tensor, width: int
) -> tuple[Tensor, ...]:
    """Apply a function whose rows do not know of each other, slice by slice where that pays.

    It pays on a CPU: the intermediate tensors of the whole would be written to memory and read
    back, and their pages are new to the process in every pass. Where gradients are wanted, only the
    largest are cut, and made again in the backward pass: to keep the others takes more memory, and
    a tenth less time. A GPU and compiled code have better means.

    Args:
        function: (n, ...) -> tensors (n, ...), for any number n of rows.
        rows: What it is applied to, (N, ...).
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
    """Whether slices would not pay; a traced graph would be fixed to this number of rows."""
    return rows.device.type != 'cpu' or torch.compiler.is_compiling() or torch.jit.is_tracing()


def _whole_bytes() -> int:
    """Up to which size an intermediate tensor is made as a whole."""
    return RECOMPUTE_BYTES if torch.is_grad_enabled() else SLICE_BYTES
