"""Attention inside a sentence (inner) and between sentences (outer).

Outer attention has a relative position: ``softmax(q k^T / sqrt(d) + Q R K^T) v``, where ``Q R K^T``
is a resized position table, given as factors. The published form adds it to the logits. The fused
one (ours) avoids storing large matrices of them: :func:`attend_biased` chooses one of three exact
forms.

- :func:`fold` appends the factors to queries and keys, for any device and any fused kernel.
- :func:`slicewise`, in ``cpu_attention.py``, is for a CPU in full precision: it avoids the products
  with the padded columns by computing the bias of a few queries at a time, in the cache.
- :func:`explicit_attention` computes all logits, as published. It has the fewest operators, and
  is the fastest on a CPU for small images.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.attention import SDPBackend

from ptnt_mm.models.cpu_attention import runs_slicewise, slicewise, with_queries_last
from ptnt_mm.models.positions import Factors, OffsetKeys, without_autocast
from ptnt_mm.models.tokens import Grid, crop, map_to_tokens, reduced, tokens_to_map


class Folded(NamedTuple):
    """A bias as columns to append to queries and keys, made once for the blocks of a stage."""

    queries: Tensor
    """Q R, padded with zeros, (1, N, heads, P)."""

    keys: Tensor
    """sqrt(d) K, padded with zeros, (1, M, 1, P)."""

    factors: Factors
    """The factors that they were made of."""


Bias = Tensor | OffsetKeys | Factors | Folded | None
"""Added to the logits of outer attention: (1, heads, N, M), how to compute it, or None."""

FEW_LOGITS = 2**18
"""Most logits of an image that are all stored at once (measured, see ``docs/performance.md``)."""

KERNEL_MULTIPLE = 8
"""Fused GPU kernels need head widths that are multiples of this."""


class Attention(nn.Module):
    """Multi-head attention with the projections that inner and outer attention share.

    Args:
        dim: Channels of a token.
        num_heads: Heads, a divisor of ``dim``.
        attn_drop: Dropout on the attention weights.
        proj_drop: Dropout after the output projection.
        qkv_bias: Whether queries, keys and values have a bias.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        attn_drop: float = 0.0,
        proj_drop: float = 0.0,
        qkv_bias: bool = False,
    ):
        super().__init__()
        self.num_heads = num_heads
        self.attn_drop = attn_drop
        self.q = nn.Linear(dim, dim, bias=qkv_bias)
        self.kv = nn.Linear(dim, dim * 2, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(proj_drop)

    def project(self, query_tokens: Tensor, key_tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(B, N, C), (B, M, C) -> q (B, heads, N, d), k and v (B, heads, M, d)."""
        keys, values = self.kv(key_tokens).chunk(2, dim=-1)
        return tuple(self._split(tokens) for tokens in (self.q(query_tokens), keys, values))

    def join(self, heads: Tensor) -> Tensor:
        """(B, heads, N, d) -> (B, N, C), projected."""
        return self.proj_drop(self.proj(heads.transpose(1, 2).flatten(2)))

    @property
    def drop_now(self) -> float:
        """The dropout rate of the attention weights in the current mode."""
        return self.attn_drop if self.training else 0.0

    def _split(self, tokens: Tensor) -> Tensor:
        return tokens.unflatten(2, (self.num_heads, -1)).transpose(1, 2)


class InnerAttention(Attention):
    """Between the words of a sentence, without a position table."""

    def forward(self, inner: Tensor) -> Tensor:
        """(B*N, m, c) -> (B*N, m, c) for m words in a sentence."""
        return self.join(self._attend(*self.project(inner, inner)))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q, k and v (B*N, heads, m, d) -> (B*N, heads, m, d)."""
        if _has_kernel_for_few_keys(q):
            return F.scaled_dot_product_attention(q, k, v, dropout_p=self.drop_now)
        # With autocast, the softmax would store its weights in float32.
        with without_autocast(q):
            return explicit_attention(q, k, v, None, self.drop_now)


class OuterAttention(Attention):
    """Between all sentences of an image, with a relative position.

    Keys and values come from averages of r x r sentences: the spatial reduction of PVT (arXiv
    2102.12122), with average pooling as in the linear form of PVTv2 (arXiv 2106.13797). A window
    that extends past the border averages its real sentences only, so that none is dropped (ours;
    identical to the authors' code wherever r divides the grid).

    Args:
        dim: Channels of an outer token.
        num_heads: Heads, a divisor of ``dim``.
        attn_drop: Dropout on the attention weights.
        proj_drop: Dropout after the output projection.
        qkv_bias: Whether queries, keys and values have a bias.
        sr_ratio: The side r of the averaged windows, in tokens.
        eager: Whether to compute the published form, the reference for the others, which needs
            memory for N x M logits per head.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        attn_drop: float = 0.0,
        proj_drop: float = 0.0,
        qkv_bias: bool = False,
        sr_ratio: int = 1,
        eager: bool = False,
    ):
        super().__init__(dim, num_heads, attn_drop, proj_drop, qkv_bias)
        self.sr_ratio = sr_ratio
        self.eager = eager
        if sr_ratio > 1:
            self.pool = nn.AvgPool2d(sr_ratio, ceil_mode=True)
            self.linear = nn.Linear(dim, dim)
            self.norm = nn.LayerNorm(dim)

    def forward(self, outer: Tensor, hw: Grid, bias: Bias) -> Tensor:
        """(B, h*w, C) -> (B, h*w, C); ``bias`` comes from :meth:`prepare_bias`.

        Without reduction and bias, other tokens may come first, such as a class token.
        """
        q, k, v = self.project(outer, self.key_tokens(outer, hw))
        return self.join(self._attend(q, k, v, bias))

    def prepare_bias(self, factors: Factors | None, outer: Tensor) -> Bias:
        """Bring the factors of a stage's bias into the form of its attention, once per image.

        A graph for another runtime contains the matrix: all of them support it, and it is the
        fastest form for ONNX Runtime and OpenVINO (measured, see ``docs/deploy.md``).

        Args:
            factors: Factors of the bias, or None for attention without one.
            outer: Tokens of the stage, (B, h*w, C).
        """
        if factors is None:
            return None
        if self.eager or is_captured_for_export():
            return factors.bias()
        if runs_slicewise(outer):
            return with_queries_last(factors)
        return fold_factors(factors, outer.shape[-1] // self.num_heads, outer.dtype)

    def key_tokens(self, outer: Tensor, hw: Grid) -> Tensor:
        """(B, h*w, C) -> (B, ceil(h/r)*ceil(w/r), C)."""
        if self.sr_ratio == 1:
            return outer
        pooled = crop(self.pool(tokens_to_map(outer, hw)), reduced(hw, self.sr_ratio))
        return self.norm(self.linear(map_to_tokens(pooled)))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, bias: Bias) -> Tensor:
        """Q (B, heads, N, d), k and v (B, heads, M, d) -> (B, heads, N, d)."""
        if isinstance(bias, OffsetKeys):
            bias = bias.bias(q)
        if self.eager or isinstance(bias, Tensor):
            return explicit_attention(q, k, v, bias, self.drop_now)
        if bias is None:
            return F.scaled_dot_product_attention(q, k, v, dropout_p=self.drop_now)
        return attend_biased(q, k, v, bias, self.drop_now)


ATTENTIONS = {'fused': False, 'eager': True}
"""Values of a backbone's option ``attention``, and whether each is the published form."""


def attend_biased(
    q: Tensor, k: Tensor, v: Tensor, bias: Factors | Folded, dropout: float
) -> Tensor:
    """Compute attention in the fastest form for these tensors -> (B, heads, N, d).

    Args:
        q: Queries (B, heads, N, d).
        k: Keys (B, heads, M, d).
        v: Values (B, heads, M, d).
        bias: The bias, folded or not.
        dropout: Rate of dropping attention weights.
    """
    if isinstance(bias, Factors) and (dropout or not runs_slicewise(q)):
        bias = fold_factors(bias, q.shape[-1], q.dtype)
    if isinstance(bias, Folded):
        return fold(q, k, v, bias, dropout)
    if _has_few_logits(q, k):
        return explicit_attention(q, k, v, bias.queries @ bias.keys().mT)
    return slicewise(q, k, v, bias)


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


def fold_factors(factors: Factors, width: int, dtype: torch.dtype) -> Folded:
    """Prepare a bias for :func:`fold`.

    Args:
        factors: Factors of the bias.
        width: Channels of a head.
        dtype: Type of the tokens.
    """
    queries = factors.queries.transpose(1, 2).to(dtype)
    keys = (factors.keys() * width**0.5)[None, :, None].to(dtype)
    padding = -(width + keys.shape[-1]) % KERNEL_MULTIPLE
    if padding:
        queries, keys = F.pad(queries, (0, padding)), F.pad(keys, (0, padding))
    return Folded(queries, keys, factors)


def fold(q: Tensor, k: Tensor, v: Tensor, bias: Folded, dropout: float = 0.0) -> Tensor:
    """Fold the bias into the product ``[q, Q R] [k, sqrt(d) K]^T / sqrt(d)``, for fused kernels.

    Heads stay after tokens in memory, so that joining them copies nothing. Most of those kernels
    require values of the same width as queries, so they are padded.

    Args:
        q: Queries (B, heads, N, d).
        k: Keys (B, heads, M, d).
        v: Values (B, heads, M, d).
        bias: The bias from :func:`fold_factors`.
        dropout: Rate of dropping attention weights.
    """
    batch, heads, _, width = q.shape
    queries = bias.queries.to(q.dtype).expand(batch, -1, -1, -1)
    keys = bias.keys.to(k.dtype).expand(batch, -1, heads, -1)
    q = torch.cat([q.transpose(1, 2), queries], dim=-1).transpose(1, 2)
    k = torch.cat([k.transpose(1, 2), keys], dim=-1).transpose(1, 2)
    if not _takes_narrow_values(q, k, v, dropout):
        v = F.pad(v, (0, keys.shape[-1]))
    joined = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, scale=width**-0.5)
    return joined[..., :width]


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


def _has_kernel_for_few_keys(q: Tensor) -> bool:
    """Whether the fused kernel is the fastest form for 16 keys.

    A GPU's works on tiles of 128 queries and keys, and takes 4 to 6 times as long as the published
    form (measured, see ``docs/performance.md``).
    """
    return q.device.type == 'cpu'


def _has_few_logits(q: Tensor, k: Tensor) -> bool:
    """Whether slices would be too small; graphs always use slices, to be valid for any size."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return False
    return q[0, ..., 0].numel() * k.shape[2] <= FEW_LOGITS


# torch 2.6 cannot distinguish export from compilation: its exported graphs keep custom operators.
_is_exporting = getattr(torch.compiler, 'is_exporting', lambda: False)


def is_captured_for_export() -> bool:
    """Whether a graph is captured for another runtime, which has no custom operators."""
    return torch.jit.is_tracing() or _is_exporting()
