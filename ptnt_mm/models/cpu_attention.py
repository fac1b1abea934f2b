"""Computation on a CPU in slices that stay in the cache (ours).

:func:`slicewise` is attention with a bias as a custom operator: the logits and the bias of a few
queries at a time stay in the cache, forward and backward. :func:`in_slices` does the same for any
function of independent rows, such as an MLP.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ptnt_mm.models.positions import Factors

FORWARD_LOGITS, BACKWARD_LOGITS = 2**20, 2**18
"""Logits of one head in a slice (measured, see ``docs/performance.md``).

In the backward pass they take 1 MiB, so that products stay in a core's second-level cache.
"""

LOG2_E = math.log2(math.e)

STEP = 32
"""Queries that the CPU kernel processes at a time."""

SLICE_BYTES = 4 * 2**20
"""Size of a slice's widest intermediate tensor (measured, see ``docs/performance.md``)."""

RECOMPUTE_BYTES = 40 * 2**20
"""Widest intermediate tensor that is kept for the backward pass and not recomputed."""


def runs_slicewise(q: Tensor) -> bool:
    """Whether :func:`slicewise` takes these queries, and is faster than a folded bias.

    Lower precisions have faster products, and torch.func (grad, vmap) does not support custom
    operators.
    """
    full_precision = q.dtype in (torch.float32, torch.float64)
    return (
        _KERNEL is not None
        and q.device.type == 'cpu'
        and full_precision
        and (torch.compiler.is_compiling() or not torch._C._are_functorch_transforms_active())
    )


def slicewise(q: Tensor, k: Tensor, v: Tensor, factors: Factors) -> Tensor:
    """(B, heads, N, d) and two times (B, heads, M, d) -> (B, heads, N, d), differentiable once."""
    return _operator(q, k, v, *factors)[0]


def _kernel() -> Callable | None:
    """Torch's CPU attention that returns the log-sum-exp; None if torch lacks what is used here.

    This and the two other functions are private to torch, and unchanged since torch 2.6 at least.
    """
    operator = getattr(torch.ops.aten, '_scaled_dot_product_flash_attention_for_cpu', None)
    softmax_backward = getattr(torch, '_softmax_backward_data', None)
    transforms = getattr(torch._C, '_are_functorch_transforms_active', None)
    if operator is None or softmax_backward is None or transforms is None:
        return None
    schema = operator.default._schema
    taken = [argument.name for argument in schema.arguments]
    known = taken[:3] == ['query', 'key', 'value'] and 'attn_mask' in taken
    return operator if known and len(schema.returns) == 2 else None


_KERNEL = _kernel()


def _attend(
    q: Tensor, k: Tensor, v: Tensor, queries: Tensor, rows: Tensor, columns: Tensor
) -> tuple[Tensor, Tensor]:
    """The attention's output and its log-sum-exp (B, heads, N), which the backward pass needs."""
    k, v = k.contiguous(), v.contiguous()
    outputs, sums = torch.empty_like(q), q.new_empty(q.shape[:-1])
    slices = _slices(q, k, FORWARD_LOGITS)
    bias = _buffer(q, k, slices)
    for image in range(len(q)):
        for heads, part in slices:
            factors = Factors(queries[0, heads, part], rows, columns)
            mask = _write_bias(factors, bias)[None]
            keys, values = k[image, heads], v[image, heads]
            found = _KERNEL(q[image, heads, part][None], keys[None], values[None], attn_mask=mask)
            outputs[image, heads, part] = found[0][0]
            sums[image, heads, part] = found[1][0]
    return outputs, sums


def _attend_backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    queries: Tensor,
    rows: Tensor,
    columns: Tensor,
    sums: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of q, k, v and ``queries``, with weights recomputed from the log-sum-exp."""
    scale = q.shape[-1] ** -0.5
    k, v = k.contiguous(), v.contiguous()
    grad_q, grad_queries = torch.empty_like(q), torch.zeros_like(queries)
    grad_k_t, grad_v_t = k.new_zeros(k.mT.shape), v.new_zeros(v.mT.shape)
    slices = _slices(q, k, BACKWARD_LOGITS)
    weights_buffer, logits_buffer = _buffer(q, k, slices), _buffer(q, k, slices)
    for image in range(len(q)):
        for heads, part in slices:
            q_, grad_ = q[image, heads, part], grad[image, heads, part]
            # Interpolation rows sum to 1, so this subtracts the log-sum-exp from every logit.
            shifted = queries[0, heads, part] - sums[image, heads, part, None]
            # Logits in base 2: torch's exp calls MKL, which takes three times as long on an AMD.
            weights = _write_bias(Factors(shifted, rows, columns * LOG2_E), weights_buffer)
            weights.baddbmm_(q_, k[image, heads].mT, alpha=scale * LOG2_E).exp2_()
            logits = logits_buffer[: weights.numel()].view_as(weights)
            torch.bmm(grad_, v[image, heads].mT, out=logits)
            torch._softmax_backward_data(logits, weights, -1, q.dtype, grad_input=logits)
            grad_v_t[image, heads].baddbmm_(grad_.mT, weights)
            grad_k_t[image, heads].baddbmm_(q_.mT, logits, alpha=scale)
            grad_q[image, heads, part] = logits @ k[image, heads]
            grad_queries[0, heads, part] += _shrink(logits, rows, columns)
    return grad_q.mul_(scale), grad_k_t.mT, grad_v_t.mT, grad_queries


def _slices(q: Tensor, k: Tensor, logits: int) -> list[tuple[slice, slice]]:
    """Heads and queries of each slice: one head per thread, and at most ``logits`` per head."""
    heads, places = q.shape[1:3]
    heads_each = min(heads, torch.get_num_threads())
    places_each = min(places, max(STEP, logits // k.shape[2] // STEP * STEP))
    return [
        (slice(head, head + heads_each), slice(place, place + places_each))
        for head in range(0, heads, heads_each)
        for place in range(0, places, places_each)
    ]


def _buffer(q: Tensor, k: Tensor, slices: list[tuple[slice, slice]]) -> Tensor:
    """Memory for a slice's logits, reused: touching fresh pages costs more than the sums."""
    heads, part = slices[0]
    return q.new_empty(heads.stop * part.stop * k.shape[2])


def _write_bias(factors: Factors, buffer: Tensor) -> Tensor:
    """Factors with queries (heads, n, M_pre) -> the bias (heads, n, M) in the buffer's memory."""
    tall = torch.einsum('ha,gnab->gnhb', factors.rows, factors.grids())
    bias = buffer[: tall[..., 0].numel() * len(factors.columns)]
    torch.mm(tall.flatten(0, 2), factors.columns.mT, out=bias.view(-1, len(factors.columns)))
    return bias.view(*tall.shape[:2], -1)


def _shrink(grad: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The transpose of :func:`_write_bias`: (heads, n, M) -> (heads, n, M_pre).

    A BLAS is fast for a product with 8 rows, and slow for one with 8 columns: a fifth of the time.
    """
    narrow = columns.mT.contiguous() @ grad.view(-1, len(columns)).mT
    grids = narrow.view(-1, len(rows)) @ rows  # (w_pre * heads * n, h_pre)
    return grids.view(columns.shape[1], *grad.shape[:2], -1).permute(1, 2, 3, 0).flatten(-2)


# Custom operators, so that torch.compile does not unroll the loops.
_operator = torch.library.custom_op('ptnt_mm::biased_attention', _attend, mutates_args=())
_backward_operator = torch.library.custom_op(
    'ptnt_mm::biased_attention_backward', _attend_backward, mutates_args=()
)


@_operator.register_fake
def _(q, k, v, queries, rows, columns):
    return torch.empty_like(q), q.new_empty(q.shape[:-1])


@_backward_operator.register_fake
def _(grad, q, k, v, queries, rows, columns, sums):
    grad_k, grad_v = (x.new_empty(x.mT.shape).mT for x in (k, v))
    return torch.empty_like(q), grad_k, grad_v, torch.empty_like(queries)


def _keep_for_backward(ctx, inputs, output):
    ctx.save_for_backward(*inputs, output[1])
    ctx.mark_non_differentiable(output[1])


def _backward(ctx, grad, _grad_sums):
    return (*_backward_operator(grad, *ctx.saved_tensors), None, None)


_operator.register_autograd(_backward, setup_context=_keep_for_backward)


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
