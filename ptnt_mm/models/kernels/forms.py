"""The forms of outer attention: each holds the bias of a stage, and attends with it.

Outer attention has a relative position: ``softmax(q k^T / sqrt(d) + Q R K^T) v``, where ``Q R K^T``
is a resized position table, given as factors. In full precision all forms are exact. The published
one stores the logits; the others (ours) avoid large matrices of them. :func:`choose_form` takes one
for a stage.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812
from torch.nn.attention import SDPBackend

from ptnt_mm.models.kernels.slicewise import runs_slicewise, slicewise, with_queries_last
from ptnt_mm.models.position_tables import Factors, OffsetKeys

FEW_LOGITS = 2**18
"""Most logits of an image that are all stored at once (``docs/research/performance.md``)."""

KERNEL_MULTIPLE = 8
"""Fused GPU kernels need head widths that are multiples of this."""


class Explicit(NamedTuple):
    """Store every logit, as published: any bias, and the fewest operators."""

    bias: Tensor | OffsetKeys | None
    """Added to the logits, (1, heads, N, M), or how to compute it from queries; or None."""

    def added(self, rows: Tensor, queries: Callable[[], Tensor]) -> Tensor | None:
        """See :class:`Form`."""
        bias = self.bias.bias(queries()) if isinstance(self.bias, OffsetKeys) else self.bias
        return None if bias is None else bias[:, :, rows]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
        """Q (B, heads, N, d), k and v (B, heads, M, d) -> (B, heads, N, d)."""
        bias = self.bias.bias(q) if isinstance(self.bias, OffsetKeys) else self.bias
        return explicit_attention(q, k, v, bias, dropout)


class Unbiased(NamedTuple):
    """Torch's fused kernel, for attention without a position table."""

    def added(self, rows: Tensor, queries: Callable[[], Tensor]) -> None:
        """See :class:`Form`."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
        """Q (B, heads, N, d), k and v (B, heads, M, d) -> (B, heads, N, d)."""
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout)


class Folded(NamedTuple):
    """Append the factors to queries and keys, for any device and any fused kernel.

    The bias is part of the product ``[q, Q R] [k, sqrt(d) K]^T / sqrt(d)``. In lower precision, the
    factors are rounded: a logit is off by up to 1.1 eps times the bias of ``|Q R|`` and ``|K|``.
    The published form adds an unrounded bias to rounded products. So this one is more accurate for
    small tables, and 2 to 5 times less accurate for values around 3 to 10 (measured).
    """

    queries: Tensor
    """Q R, padded with zeros, (1, N, heads, P)."""

    keys: Tensor
    """sqrt(d) K, padded with zeros, (1, M, 1, P)."""

    factors: Factors
    """The factors that they were made of."""

    def added(self, rows: Tensor, queries: Callable[[], Tensor]) -> Tensor:
        """See :class:`Form`."""
        return self.factors.of_queries(rows).bias()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
        """Q (B, heads, N, d), k and v (B, heads, M, d) -> (B, heads, N, d).

        Heads stay after tokens in memory, so that joining them copies nothing. Most fused kernels
        require values of the same width as queries, so they are padded.
        """
        batch, heads, _, width = q.shape
        queries = self.queries.to(q.dtype).expand(batch, -1, -1, -1)
        keys = self.keys.to(k.dtype).expand(batch, -1, heads, -1)
        q = torch.cat([q.transpose(1, 2), queries], dim=-1).transpose(1, 2)
        k = torch.cat([k.transpose(1, 2), keys], dim=-1).transpose(1, 2)
        if not _takes_narrow_values(q, k, v, dropout):
            v = F.pad(v, (0, keys.shape[-1]))
        joined = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, scale=width**-0.5)
        return joined[..., :width]


class Slicewise(NamedTuple):
    """Compute the bias of a few queries at a time, in the cache, for a CPU in full precision.

    Dropout and lower precisions take the folded form.
    """

    factors: Factors

    def added(self, rows: Tensor, queries: Callable[[], Tensor]) -> Tensor:
        """See :class:`Form`."""
        return self.factors.of_queries(rows).bias()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
        """Q (B, heads, N, d), k and v (B, heads, M, d) -> (B, heads, N, d)."""
        if dropout or not runs_slicewise(q):
            return fold_factors(self.factors, q.shape[-1], q.dtype).attend(q, k, v, dropout)
        return slicewise(q, k, v, self.factors)


class Form(Protocol):
    """How a stage attends. Forms of this module also have ``added``, for pictures of attention.

    ``added(rows, queries)`` is what they add to the logits of the queries at indices ``rows`` (k,):
    (1, heads, k, M), or None. ``queries`` computes all of them, (1, heads, N, d).
    """

    def attend(self, q: Tensor, k: Tensor, v: Tensor, dropout: float = 0.0) -> Tensor:
        """Q (B, heads, N, d), k and v (B, heads, M, d) -> (B, heads, N, d)."""


def choose_form(
    bias: Factors | OffsetKeys | Tensor | Form | None, outer: Tensor, heads: int, eager: bool
) -> Form:
    """Choose the fastest form for the tokens of a stage, once for all its blocks.

    A graph for another runtime contains the matrix: all of them support it, and it is the fastest
    form for ONNX Runtime and OpenVINO (measured, see ``docs/deploy.md``).

    Args:
        bias: The bias, its factors, its keys, or None. A form is returned unchanged.
        outer: Tokens of the stage, (B, N, C).
        heads: The heads of its attention.
        eager: Whether to take the published form.
    """
    if isinstance(bias, Factors):
        if eager or is_captured_for_export():
            return Explicit(bias.bias())
        if runs_slicewise(outer):
            bias = with_queries_last(bias)
            if _has_few_logits(bias):
                return Explicit(bias.queries @ bias.keys().mT)
            return Slicewise(bias)
        return fold_factors(bias, outer.shape[-1] // heads, outer.dtype)
    if hasattr(bias, 'attend'):
        return bias
    return Unbiased() if bias is None and not eager else Explicit(bias)


def explicit_attention(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, dropout: float = 0.0
) -> Tensor:
    """The published form: compute every logit, add the bias, apply the softmax.

    Args:
        q: Queries (B, heads, N, d).
        k: Keys (B, heads, M, d).
        v: Values (B, heads, M, d).
        bias: Added to the logits, (1 or B, heads, N, M), or None.
        dropout: Rate of dropping attention weights.
    """
    return F.dropout(attention_weights(q, k, bias), dropout) @ v


def attention_weights(q: Tensor, k: Tensor, bias: Tensor | None) -> Tensor:
    """The softmax of the scaled products and their bias -> (B, heads, N, M); rows add up to 1.

    Args:
        q: Queries (B, heads, N, d).
        k: Keys (B, heads, M, d).
        bias: Added to the logits, (1, heads, N, M), or None.
    """
    logits = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
    return (logits if bias is None else logits + bias).softmax(dim=-1)


def fold_factors(factors: Factors, width: int, dtype: torch.dtype) -> Folded:
    """Fold a bias for heads with ``width`` channels and tokens of a type."""
    queries = factors.queries.transpose(1, 2).to(dtype)
    keys = (factors.keys() * width**0.5)[None, :, None].to(dtype)
    padding = -(width + keys.shape[-1]) % KERNEL_MULTIPLE
    if padding:
        queries, keys = F.pad(queries, (0, padding)), F.pad(keys, (0, padding))
    return Folded(queries, keys, factors)


def _takes_narrow_values(q: Tensor, k: Tensor, v: Tensor, dropout: float) -> bool:
    """Whether the fastest kernel takes values of a different width than queries and keys.

    In float32 that is the memory-efficient one, which does. In half precision it is
    FlashAttention, which does not, or cuDNN's, which does: torch chooses it on some GPUs.
    """
    if q.device.type == 'cpu' or torch.compiler.is_compiling():
        return False
    if not q.is_cuda or q.dtype == torch.float32:
        return True
    chosen = torch._fused_sdp_choice(q, k, v, None, dropout, False)
    return chosen == SDPBackend.CUDNN_ATTENTION.value


def _has_few_logits(bias: Factors) -> bool:
    """Whether slices would be too small; graphs always use slices, to be valid for any size."""
    if torch.compiler.is_compiling():
        return False
    keys = len(bias.rows) * len(bias.columns)
    return bias.queries[..., 0].numel() * keys <= FEW_LOGITS


# torch 2.6 cannot distinguish export from compilation: its exported graphs keep custom operators.
_is_exporting = getattr(torch.compiler, 'is_exporting', lambda: False)


def is_captured_for_export() -> bool:
    """Whether a graph is captured for another runtime, which has no custom operators."""
    return torch.jit.is_tracing() or _is_exporting()
