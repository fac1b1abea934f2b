"""Computation on a CPU in slices that stay in the cache (ours).

:func:`slicewise` is attention with a bias as a custom operator: the logits and the bias of a few
queries at a time stay in the cache, forward and backward. :func:`in_slices` does the same for any
function of independent rows, such as an MLP.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ptnt_mm.models.positions import Factors

SLICE_LOGITS = 2**22
"""Logits of one slice (measured, see ``docs/performance.md``)."""

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
    size = _slice_size(q, k)
    bias = _buffer(q, k, size)
    for image in range(len(q)):
        tensors = q[image], queries[0], outputs[image], sums[image]
        for q_, queries_, outputs_, sums_ in _split(tensors, size):
            mask = _write_bias(Factors(queries_, rows, columns), bias)[None]
            found = _KERNEL(q_[None], k[None, image], v[None, image], attn_mask=mask)
            outputs_.copy_(found[0][0])
            sums_.copy_(found[1][0])
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
    size = _slice_size(q, k)
    weights_buffer, logits_buffer = _buffer(q, k, size), _buffer(q, k, size)
    for image in range(len(q)):
        tensors = q[image], queries[0], sums[image], grad[image], grad_q[image], grad_queries[0]
        for q_, queries_, sums_, grad_, grad_q_, grad_queries_ in _split(tensors, size):
            # Interpolation rows sum to 1, so this subtracts the log-sum-exp from every logit.
            shifted = Factors(queries_ - sums_[..., None], rows, columns)
            weights = _write_bias(shifted, weights_buffer)
            weights.baddbmm_(q_, k[image].mT, alpha=scale).exp_()
            logits = logits_buffer[: weights.numel()].view_as(weights)
            torch.bmm(grad_, v[image].mT, out=logits)
            torch._softmax_backward_data(logits, weights, -1, q.dtype, grad_input=logits)
            grad_v_t[image].baddbmm_(grad_.mT, weights)
            grad_k_t[image].baddbmm_(q_.mT, logits, alpha=scale)
            grad_q_.copy_(logits @ k[image])
            grids = logits.unflatten(-1, (len(rows), len(columns)))
            grad_queries_.add_((rows.mT @ (grids @ columns)).flatten(-2))
    return grad_q.mul_(scale), grad_k_t.mT, grad_v_t.mT, grad_queries


def _slice_size(q: Tensor, k: Tensor) -> int:
    """Number of queries per slice, so that their logits fit the cache."""
    return max(STEP, SLICE_LOGITS // (q.shape[1] * k.shape[2]) // STEP * STEP)


def _split(tensors: tuple[Tensor, ...], size: int) -> Iterator[tuple[Tensor, ...]]:
    """Tensors (heads, N, ...) -> the same of a slice's queries, as views."""
    return zip(*(tensor.split(size, dim=1) for tensor in tensors), strict=True)


def _buffer(q: Tensor, k: Tensor, size: int) -> Tensor:
    """Memory for a slice's logits, reused: touching fresh pages costs more than the sums."""
    return q.new_empty(q.shape[1] * min(size, q.shape[2]) * k.shape[2])


def _write_bias(factors: Factors, buffer: Tensor) -> Tensor:
    """Factors with queries (heads, n, M_pre) -> the bias (heads, n, M) in the buffer's memory."""
    tall = factors.rows @ factors.grids()  # (heads, n, h, w_pre)
    bias = buffer[: tall[..., 0].numel() * len(factors.columns)]
    torch.mm(tall.flatten(0, 2), factors.columns.mT, out=bias.view(-1, len(factors.columns)))
    return bias.view(*tall.shape[:2], -1)


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
