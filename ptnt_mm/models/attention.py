"""Attention inside a sentence (inner) and between sentences (outer).

The forms of outer attention are in ``kernels/forms.py``.
"""

from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.kernels.forms import Form, choose_form, explicit_attention
from ptnt_mm.models.kernels.memory import in_slices
from ptnt_mm.models.kernels.slicewise import register_flop_formulas
from ptnt_mm.models.position_tables import Factors, OffsetKeys, without_autocast
from ptnt_mm.models.tokens import Grid, crop, map_to_tokens, reduced, tokens_to_map


class Attention(nn.Module):
    """Multi-head attention with the projections that inner and outer attention share.

    Args:
        dim: Channels of a token.
        num_heads: Heads, a divisor of ``dim``.
        attn_drop: Dropout on the attention weights.
        proj_drop: Dropout after the output projection.
        qkv_bias: Whether queries, keys and values have a bias.
        eager: Whether to compute the published form.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        attn_drop: float = 0.0,
        proj_drop: float = 0.0,
        qkv_bias: bool = False,
        eager: bool = False,
    ):
        super().__init__()
        self.num_heads = num_heads
        self.head_width = dim // num_heads
        self.attn_drop = attn_drop
        self.eager = eager
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
        return in_slices(self._forward, inner, 4 * inner.shape[1] * inner.shape[2])

    def _forward(self, inner: Tensor) -> Tensor:
        """Words of n sentences, (n, m, c) -> (n, m, c)."""
        return self.join(self._attend(*self.project(inner, inner)))

    def _attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Q, k and v (B*N, heads, m, d) -> (B*N, heads, m, d)."""
        if not self.eager and _has_kernel_for_few_keys(q):
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
        super().__init__(dim, num_heads, attn_drop, proj_drop, qkv_bias, eager)
        self.sr_ratio = sr_ratio
        register_flop_formulas()
        if sr_ratio > 1:
            self.pool = nn.AvgPool2d(sr_ratio, ceil_mode=True)
            self.linear = nn.Linear(dim, dim)
            self.norm = nn.LayerNorm(dim)

    def forward(self, outer: Tensor, hw: Grid, form: Form) -> Tensor:
        """(B, h*w, C) -> (B, h*w, C); ``form`` comes from :meth:`form`.

        Without reduction and bias, other tokens may come first, such as a class token.
        """
        q, k, v = self.project(outer, self.key_tokens(outer, hw))
        return self.join(form.attend(q, k, v, self.drop_now))

    def form(self, bias: Factors | OffsetKeys | Tensor | Form | None, outer: Tensor) -> Form:
        """Choose the form of attention for a stage, once for all its blocks.

        Args:
            bias: Added to the logits: (1, heads, N, M), its factors, keys for offsets, or None. A
                form is returned unchanged.
            outer: Tokens of the stage, (B, N, C).
        """
        return choose_form(bias, outer, self.num_heads, self.eager)

    def key_tokens(self, outer: Tensor, hw: Grid) -> Tensor:
        """(B, h*w, C) -> (B, ceil(h/r)*ceil(w/r), C)."""
        if self.sr_ratio == 1:
            return outer
        pooled = crop(self.pool(tokens_to_map(outer, hw)), reduced(hw, self.sr_ratio))
        return self.norm(self.linear(map_to_tokens(pooled)))


ATTENTIONS = {'fused': False, 'eager': True}
"""Values of a backbone's option ``attention``, and whether each is the published form.

Only the published form has second derivatives and derivatives in forward mode.
"""


def _has_kernel_for_few_keys(q: Tensor) -> bool:
    """Whether the fused kernel is the fastest form for 16 keys.

    A GPU's works on tiles of 128 queries and keys, and takes 4 to 6 times as long as the published
    form (measured, see ``docs/research/performance.md``).
    """
    return q.device.type == 'cpu'
