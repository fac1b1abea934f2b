"""Attention with a bias in slices that stay in a CPU's cache (ours).

:func:`slicewise` is a custom operator: the logits and the bias of a few queries at a time stay in
the cache, forward and backward. Where there is enough work, each thread has its own heads or
queries.
"""

import math
from collections.abc import Iterator
from functools import cache, partial

import torch
from torch import Tensor

from ptnt_mm.models.kernels.memory import transforms_active
from ptnt_mm.models.kernels.threads import in_threads
from ptnt_mm.models.position_tables import Factors

LOGITS = 3 * 2**17
"""Logits of a slice for each thread, which take 1.5 MiB (``docs/research/performance.md``)."""

PART = 4 * LOGITS
"""Least number of logits on average for which threads get parts: handing over takes 0.2 ms."""

STEP = 16
"""Slices have a multiple of this many queries, a vector of AVX-512."""

LOG2_E = math.log2(math.e)


def runs_slicewise(q: Tensor) -> bool:
    """Whether :func:`slicewise` takes these queries, and is faster than a folded bias.

    Lower precisions have faster products, and torch.func (grad, vmap) does not support custom
    operators.
    """
    return (
        q.device.type == 'cpu'
        and q.dtype in (torch.float32, torch.float64)
        and (torch.compiler.is_compiling() or not transforms_active())
    )


def with_queries_last(factors: Factors) -> Factors:
    """Put the factors into the order of memory in which :func:`slicewise` reads them."""
    # torch.compile of torch 2.6 cannot read a named tuple's _replace.
    return Factors(factors.queries.mT.contiguous().mT, factors.rows, factors.columns)


def slicewise(q: Tensor, k: Tensor, v: Tensor, factors: Factors) -> Tensor:
    """(B, heads, N, d) and two times (B, heads, M, d) -> (B, heads, N, d), differentiable once."""
    return _operator(q, k, v, *factors)[0]


def _attend(
    q: Tensor, k: Tensor, v: Tensor, queries: Tensor, rows: Tensor, columns: Tensor
) -> tuple[Tensor, Tensor]:
    """The output, and its log-sum-exp (B, heads, N, 1), which the backward pass needs."""
    k, v = k.contiguous(), v.contiguous()
    outputs, sums = torch.empty_like(q), q.new_empty(*q.shape[:-1], 1)
    parts = _slices(_part_size(q, k), (k, v), (q, queries, outputs, sums))
    in_threads(partial(_attend_part, rows, columns * LOG2_E), parts)
    return outputs, sums


def _attend_part(
    rows: Tensor,
    columns: Tensor,
    k: Tensor,
    v: Tensor,
    q: Tensor,
    queries: Tensor,
    outputs: Tensor,
    sums: Tensor,
) -> None:
    """Write the output (B, heads, N, d) and the log-sum-exp (B, heads, N, 1) of some queries.

    Logits are in base 2: on an AMD, torch's exp takes three times as long as exp2, as it calls MKL.
    """
    scale = q.shape[-1] ** -0.5 * LOG2_E
    size = _slice_size(q, k)
    buffer = _buffer(q, k, size)
    for image in range(len(q)):
        of_keys = k[image], v[image]
        of_queries = q[image], queries[0], outputs[image], sums[image]
        for k_, v_, q_, queries_, outputs_, sums_ in _slices(size, of_keys, of_queries):
            logits = _write_bias(queries_, rows, columns, buffer)
            logits.baddbmm_(k_, q_.mT, alpha=scale)
            highest = logits.amax(dim=1, keepdim=True)
            weights = logits.sub_(highest).exp2_()
            totals = weights.sum(dim=1, keepdim=True)
            torch.bmm(weights.mT, v_, out=outputs_).div_(totals.mT)
            torch.add(highest.mT, totals.mT.log2(), out=sums_)
    sums.div_(LOG2_E)


def _attend_backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    queries: Tensor,
    rows: Tensor,
    columns: Tensor,
    outputs: Tensor,
    sums: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of q, k, v and ``queries``."""
    k, v = k.contiguous(), v.contiguous()
    grad_q, grad_queries = torch.empty_like(q), torch.zeros_like(queries)
    grad_k, grad_v = torch.zeros_like(k), torch.zeros_like(v)
    means = (grad * outputs).sum(dim=-1, keepdim=True)
    size, of_queries = _part_size(q, k), (q, queries, grad, sums, means, grad_q, grad_queries)
    parts = _slices(size, (k, v), of_queries)
    found = in_threads(partial(_attend_part_backward, rows, columns), parts)
    # Parts of the same heads are added here: threads must not add to one tensor at a time.
    totals = _slices(size, (grad_k, grad_v), (q,))
    for (total_k, total_v, _), (part_k, part_v) in zip(totals, found, strict=True):
        total_k.add_(part_k)
        total_v.add_(part_v)
    return grad_q, grad_k, grad_v, grad_queries


def _attend_part_backward(
    rows: Tensor,
    columns: Tensor,
    k: Tensor,
    v: Tensor,
    q: Tensor,
    queries: Tensor,
    grad: Tensor,
    sums: Tensor,
    means: Tensor,
    grad_q: Tensor,
    grad_queries: Tensor,
) -> tuple[Tensor, Tensor]:
    """Write the gradients of q and ``queries`` for some heads and queries.

    Weights are recomputed from the log-sum-exp.

    Returns:
        Their share of the gradients of k and v, (B, heads, M, d) each.
    """
    scale, columns_2 = q.shape[-1] ** -0.5, columns * LOG2_E
    grad_k, grad_v = torch.zeros_like(k), torch.zeros_like(v)
    size = _slice_size(q, k)
    weights_buffer, logits_buffer = _buffer(q, k, size), _buffer(q, k, size)
    for image in range(len(q)):
        of_keys = k[image], v[image], grad_k[image], grad_v[image]
        of_queries = q[image], queries[0], grad[image], sums[image], means[image]
        grads = grad_q[image], grad_queries[0]
        for part in _slices(size, of_keys, of_queries + grads):
            k_, v_, grad_k_, grad_v_, q_, queries_, grad_, sums_, means_ = part[:9]
            grad_q_, grad_queries_ = part[9:]
            # Interpolation rows sum to 1, so this subtracts the log-sum-exp from every logit.
            weights = _write_bias(queries_ - sums_, rows, columns_2, weights_buffer)
            weights.baddbmm_(k_, q_.mT, alpha=scale * LOG2_E).exp2_()
            logits = logits_buffer[: weights.numel()].view_as(weights)
            torch.bmm(v_, grad_.mT, out=logits).sub_(means_.mT).mul_(weights)
            grad_v_.baddbmm_(weights, grad_)
            grad_k_.baddbmm_(logits, q_, alpha=scale)
            torch.bmm(logits.mT, k_, out=grad_q_)
            grad_queries_.add_(_shrink(logits, rows, columns))
    grad_q.mul_(scale)
    return grad_k, grad_v


def _part_size(q: Tensor, k: Tensor) -> tuple[int, int]:
    """Heads and queries of a thread's part; all of them where parts would be too small.

    Heads are divided as far as that is even, then queries, because long products are faster. In a
    single part, torch's threads share each operator.
    """
    threads, (images, heads, places) = torch.get_num_threads(), q.shape[:3]
    if images * heads * places * k.shape[2] < threads * PART:
        return heads, places
    by_heads = math.gcd(heads, threads)
    most = math.ceil(places / (threads // by_heads))
    return heads // by_heads, _even_part(places, most, STEP)


def _slice_size(q: Tensor, k: Tensor) -> tuple[int, int]:
    """Heads and queries of a slice: equally many heads and about ``LOGITS`` for each thread."""
    threads, (heads, places) = torch.get_num_threads(), q.shape[1:3]
    most = max(1, LOGITS // k.shape[2])
    heads_each = _even_part(heads, max(1, most // places) * threads, threads)
    return min(heads, heads_each), _even_part(places, most, STEP)


def _even_part(length: int, most: int, step: int) -> int:
    """The length of each part, a multiple of ``step``, if a whole is cut evenly."""
    parts = math.ceil(length / most)
    return math.ceil(length / parts / step) * step


def _slices(
    size: tuple[int, int], of_keys: tuple[Tensor, ...], of_queries: tuple[Tensor, ...]
) -> Iterator[tuple[Tensor, ...]]:
    """Split tensors (..., heads, M, c) by heads, and tensors (..., heads, N, c) by queries, too."""
    heads_each, places_each = size
    tensors = of_keys + of_queries
    for heads in zip(*(tensor.split(heads_each, dim=-3) for tensor in tensors), strict=True):
        keys, queries = heads[: len(of_keys)], heads[len(of_keys) :]
        for parts in zip(*(tensor.split(places_each, dim=-2) for tensor in queries), strict=True):
            yield keys + parts


def _buffer(q: Tensor, k: Tensor, size: tuple[int, int]) -> Tensor:
    """Memory for a slice's logits, reused: touching fresh pages costs more than the sums."""
    return q.new_empty(math.prod(size) * k.shape[2])


def _write_bias(queries: Tensor, rows: Tensor, columns: Tensor, buffer: Tensor) -> Tensor:
    """Factors with queries (heads, n, M_pre) -> the bias (heads, M, n) in the buffer's memory."""
    heads, places = queries.shape[:2]
    grids = queries.mT.reshape(heads, rows.shape[1], -1)
    tall = torch.bmm(rows.expand(heads, -1, -1), grids).view(heads * len(rows), -1, places)
    bias = buffer[: heads * len(rows) * len(columns) * places].view(len(tall), -1, places)
    torch.bmm(columns.expand(len(tall), -1, -1), tall, out=bias)
    return bias.view(heads, -1, places)


def _shrink(grad: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The transpose of :func:`_write_bias`: (heads, M, n) -> (heads, n, M_pre)."""
    heads, _, places = grad.shape
    grids = grad.view(heads * len(rows), len(columns), places)
    tall = torch.bmm(columns.mT.expand(len(grids), -1, -1), grids).view(heads, len(rows), -1)
    return torch.bmm(rows.mT.expand(heads, -1, -1), tall).view(heads, -1, places).mT


# Custom operators, so that torch.compile does not unroll the loops.
_operator = torch.library.custom_op('ptnt_mm::biased_attention', _attend, mutates_args=())
_backward_operator = torch.library.custom_op(
    'ptnt_mm::biased_attention_backward', _attend_backward, mutates_args=()
)


@_operator.register_fake
def _(q, k, v, queries, rows, columns):
    return torch.empty_like(q), q.new_empty(*q.shape[:-1], 1)


@_backward_operator.register_fake
def _(grad, q, k, v, queries, rows, columns, outputs, sums):
    return tuple(torch.empty_like(x) for x in (q, k.contiguous(), v.contiguous(), queries))


def _keep_for_backward(ctx, inputs, output):
    ctx.save_for_backward(*inputs, *output)
    ctx.mark_non_differentiable(output[1])


def _backward(ctx, grad, _grad_sums):
    return (*_backward_operator(grad, *ctx.saved_tensors), None, None)


_operator.register_autograd(_backward, setup_context=_keep_for_backward)


@cache
def register_flop_formulas() -> None:
    """Make torch's FlopCounterMode count the operator; attention calls this when it is built.

    It counts the published form without the resizing of the table, as ``ptnt complexity`` does.
    """
    # Imports Triton, which takes a quarter of a second.
    from torch.utils import flop_counter

    def forward(q: torch.Size, k: torch.Size, v: torch.Size, *factors, out_shape=None) -> int:
        return flop_counter.sdpa_flop_count(q, k, v)

    def backward(
        grad: torch.Size, q: torch.Size, k: torch.Size, v: torch.Size, *others, out_shape=None
    ) -> int:
        return flop_counter.sdpa_backward_flop_count(grad, q, k, v)

    operators = torch.ops.ptnt_mm
    flop_counter.register_flop_formula(operators.biased_attention)(forward)
    flop_counter.register_flop_formula(operators.biased_attention_backward)(backward)
