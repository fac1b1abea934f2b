"""softmax(q k^T / sqrt(d) + Q R K^T) v in three exact forms (ours).

``Q R K^T`` is a resized position table, given as factors. :func:`attend_biased` chooses a form:

- :func:`fold` appends the factors to queries and keys, for any device and any fused kernel.
- :func:`slicewise`, in ``cpu_attention.py``, is for a CPU in full precision: it avoids the products
  with the padded columns by computing the bias of a few queries at a time, in the cache.
- :func:`explicit_attention` computes all logits, as published. It has the fewest operators, and
  is the fastest on a CPU as long as the logits stay in the cache.
"""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.layers.cpu_attention import runs_slicewise, slicewise
from ptnt_mm.models.layers.relative_position import Factors

FEW_LOGITS = 2**20
"""Most logits of a batch that are all stored at once (measured, see ``docs/performance.md``)."""

KERNEL_MULTIPLE = 8
"""Fused GPU kernels need head widths that are multiples of this."""


def attend_biased(q: Tensor, k: Tensor, v: Tensor, factors: Factors, dropout: float) -> Tensor:
    """Compute attention in the fastest form for these tensors -> (B, heads, N, d).

    Args:
        q: Queries (B, heads, N, d).
        k: Keys (B, heads, M, d).
        v: Values (B, heads, M, d).
        factors: Factors of the bias.
        dropout: Rate of dropping attention weights.
    """
    if dropout or not runs_slicewise(q):
        return fold(q, k, v, factors, dropout)
    if _has_few_logits(q, k):
        return explicit_attention(q, k, v, factors.queries @ factors.keys().mT)
    return slicewise(q, k, v, factors)


def explicit_attention(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, dropout: float = 0.0
) -> Tensor:
    """The published form: compute every logit, add the bias, apply the softmax.

    Args:
        q: Queries (B, heads, N, d).
        k: Keys (B, heads, M, d).
        v: Values (B, heads, M, d).
        bias: Added to the logits, (1, heads, N, M).
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


def fold(q: Tensor, k: Tensor, v: Tensor, factors: Factors, dropout: float = 0.0) -> Tensor:
    """Fold the bias into the product ``[q / sqrt(d), Q R] [k, K]^T``, for any fused kernel.

    The values are padded to the same width, which those kernels require.

    Args:
        q: Queries (B, heads, N, d).
        k: Keys (B, heads, M, d).
        v: Values (B, heads, M, d).
        factors: Factors of the bias.
        dropout: Rate of dropping attention weights.
    """
    batch, heads, _, width = q.shape
    queries, keys = factors.queries.to(q.dtype), factors.keys().to(q.dtype)
    padding = -(width + keys.shape[-1]) % KERNEL_MULTIPLE
    keys = F.pad(keys, (0, padding))
    q = torch.cat([q * width**-0.5, F.pad(queries, (0, padding)).expand(batch, -1, -1, -1)], dim=-1)
    k = torch.cat([k, keys.expand(batch, heads, -1, -1)], dim=-1)
    v = F.pad(v, (0, keys.shape[-1]))
    joined = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, scale=1.0)
    return joined[..., :width]


def _has_few_logits(q: Tensor, k: Tensor) -> bool:
    """Whether all logits fit the cache; graphs always use slices, to be valid for any size."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    return q[..., 0].numel() * k.shape[2] <= FEW_LOGITS


# torch 2.6 cannot distinguish export from compilation: its exported graphs keep custom operators.
_is_exporting = getattr(torch.compiler, 'is_exporting', lambda: False)


def is_captured_for_export() -> bool:
    """Whether a graph is captured for another runtime, which has no custom operators."""
    return torch.jit.is_tracing() or _is_exporting()
