"""Attention inside a sentence (inner) and between sentences (outer)."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.layers.biased_attention import (
    attend_biased,
    explicit_attention,
    is_captured_for_export,
)
from ptnt_mm.models.layers.relative_position import Factors
from ptnt_mm.models.layers.shapes import Grid, crop, map_to_tokens, reduced, tokens_to_map

Bias = Tensor | Factors | None
"""Added to the logits of outer attention: (1, heads, N, M), its factors, or None."""


class Attention(nn.Module):
    """Multi-head attention with the projections that inner and outer attention share.

    Args:
        dim: Channels of a token.
        num_heads: Heads; ``dim`` divides by it.
        attn_drop: Dropout on the attention weights.
        proj_drop: Dropout after the output projection.
        qkv_bias: Whether queries, keys and values have a bias.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        attn_drop: float,
        proj_drop: float,
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

    max_batch = 65535
    """Limit of CUDA's fused kernels: 4 images of 800 x 1344 are 67,200 sentences."""

    def forward(self, inner: Tensor) -> Tensor:
        """(B*N, m, c) -> (B*N, m, c) for m words in a sentence."""
        heads = self.project(inner, inner)
        if self._takes_whole(heads[0]):
            return self.join(self._attend(*heads))
        parts = zip(*(x.split(self.max_batch) for x in heads), strict=True)
        return self.join(torch.cat([self._attend(*part) for part in parts]))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.drop_now)

    def _takes_whole(self, q: Tensor) -> bool:
        """Whether a kernel takes all sentences; code compiled for a CPU skips this check."""
        if torch.compiler.is_compiling() and not q.is_cuda:
            return True
        return q.shape[0] <= self.max_batch


class OuterAttention(Attention, ABC):
    """Between all sentences of an image, with a relative position.

    Keys and values come from averages of r x r sentences: the spatial reduction of PVT (arXiv
    2102.12122), with average pooling as in the linear form of PVTv2 (arXiv 2106.13797). A window
    that extends past the border averages its real sentences only, so that none is dropped (ours;
    identical to the authors' code wherever r divides the grid).

    A subclass defines the form of the bias (:meth:`prepare_bias`, once per stage and forward) and
    how queries attend to keys (:meth:`attend`, in every block).

    Args:
        dim: Channels of an outer token.
        num_heads: Heads; ``dim`` divides by it.
        sr_ratio: The side r of the averaged windows, in tokens.
        attn_drop: Dropout on the attention weights.
        proj_drop: Dropout after the output projection.
        qkv_bias: Whether queries, keys and values have a bias.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        sr_ratio: int,
        attn_drop: float,
        proj_drop: float,
        qkv_bias: bool = False,
    ):
        super().__init__(dim, num_heads, attn_drop, proj_drop, qkv_bias)
        self.sr_ratio = sr_ratio
        if sr_ratio > 1:
            self.pool = nn.AvgPool2d(sr_ratio, ceil_mode=True)
            self.linear = nn.Linear(dim, dim)
            self.norm = nn.LayerNorm(dim)

    def forward(self, outer: Tensor, hw: Grid, bias: Bias) -> Tensor:
        """(B, h*w, C) -> (B, h*w, C); ``bias`` comes from :meth:`prepare_bias`.

        Without reduction and bias, other tokens may come first, such as a class token.
        """
        q, k, v = self.project(outer, self.key_tokens(outer, hw))
        return self.join(self.attend(q, k, v, bias))

    def key_tokens(self, outer: Tensor, hw: Grid) -> Tensor:
        """(B, h*w, C) -> (B, ceil(h/r)*ceil(w/r), C)."""
        if self.sr_ratio == 1:
            return outer
        pooled = crop(self.pool(tokens_to_map(outer, hw)), reduced(hw, self.sr_ratio))
        return self.norm(self.linear(map_to_tokens(pooled)))

    @staticmethod
    @abstractmethod
    def prepare_bias(factors: Factors | None) -> Bias:
        """Bring the factors of a stage's bias into the form that :meth:`attend` takes."""

    @abstractmethod
    def attend(self, q: Tensor, k: Tensor, v: Tensor, bias: Bias) -> Tensor:
        """Q (B, heads, N, d), k and v (B, heads, M, d) -> (B, heads, N, d)."""


class EagerOuterAttention(OuterAttention):
    """The published form: compute every logit, add the bias, apply the softmax.

    It is the reference for the other forms, and needs memory for N x M logits per head.
    """

    @staticmethod
    def prepare_bias(factors: Factors | None) -> Tensor | None:
        """The bias (1, heads, N, M)."""
        return None if factors is None else factors.bias()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        """Q (B, heads, N, d), k and v (B, heads, M, d) -> (B, heads, N, d)."""
        return explicit_attention(q, k, v, bias, self.drop_now)


class FusedOuterAttention(OuterAttention):
    """The same numbers without large N x M matrices (ours); see ``biased_attention.py``.

    A graph for another runtime contains the matrix: all of them support it, and it is the fastest
    form for ONNX Runtime and OpenVINO (measured, see ``docs/deploy.md``).
    """

    @staticmethod
    def prepare_bias(factors: Factors | None) -> Bias:
        """The factors; the bias (1, heads, N, M) for another runtime."""
        return factors.bias() if factors is not None and is_captured_for_export() else factors

    def attend(self, q: Tensor, k: Tensor, v: Tensor, bias: Bias) -> Tensor:
        """Q (B, heads, N, d), k and v (B, heads, M, d) -> (B, heads, N, d)."""
        if bias is None:
            return F.scaled_dot_product_attention(q, k, v, dropout_p=self.drop_now)
        if isinstance(bias, Tensor):
            return explicit_attention(q, k, v, bias, self.drop_now)
        return attend_biased(q, k, v, bias, self.drop_now)


OUTER_ATTENTIONS: dict[str, type[OuterAttention]] = {
    'fused': FusedOuterAttention,
    'eager': EagerOuterAttention,
}
