"""The blocks of a network: an outer transformer, with or without an inner one in front.

First their parts: norms, stochastic depth, MLPs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.utils.checkpoint import checkpoint

from ptnt_mm.models.attention import Bias, InnerAttention, OuterAttention
from ptnt_mm.models.cpu_attention import in_slices
from ptnt_mm.models.tokens import WORDS, Grid


def _group_norm(channels: int, num_groups: int = 0, eps: float = 1e-5) -> nn.GroupNorm:
    if num_groups < 1 or channels % num_groups:
        raise ValueError(
            f"norm_cfg type 'GN': num_groups is {num_groups}, expected a divisor of the {channels} "
            'channels, such as 1'
        )
    return nn.GroupNorm(num_groups, channels, eps)


_TYPES = {'BN': nn.BatchNorm2d, 'SyncBN': nn.SyncBatchNorm, 'GN': _group_norm}


def build_norm(norm_cfg: dict, channels: int) -> nn.Module:
    """Build the normalisation of a map with ``channels`` channels.

    The same dict as mmcv's ``norm_cfg``, without needing mmcv: ``type`` is 'BN', 'SyncBN' or 'GN'
    (with ``num_groups``), ``requires_grad=False`` freezes scale and shift, all else (``eps``,
    ``momentum``, ...) goes to the layer. The published checkpoints contain BatchNorm statistics, so
    'GN' is for training from random initialisation.

    Raises:
        ValueError: for any other ``type``, for anything but a dict, or for groups that do not
            divide the channels.
    """
    if not isinstance(norm_cfg, Mapping):
        raise ValueError(f"norm_cfg is {norm_cfg!r}: expected a dict such as dict(type='BN')")
    options = dict(norm_cfg)
    name = options.pop('type', None)
    requires_grad = options.pop('requires_grad', True)
    if name not in _TYPES:
        raise ValueError(f'norm_cfg type {name!r} is unknown: use one of {", ".join(_TYPES)}')
    norm = _TYPES[name](channels, **options)
    for parameter in norm.parameters():
        parameter.requires_grad_(requires_grad)
    return norm


def is_batch_norm(module: nn.Module) -> bool:
    """Whether a module keeps running statistics of its inputs."""
    return isinstance(module, nn.modules.batchnorm._BatchNorm)


class SentenceNorm(nn.LayerNorm):
    """Normalise all words of a sentence together, as PyramidTNT does."""

    def __init__(self, words: int, dim: int):
        super().__init__(words * dim)

    def forward(self, inner: Tensor) -> Tensor:
        """(B*N, m, c) -> (B*N, m, c)."""
        return super().forward(inner.flatten(1)).view_as(inner)


class WordNorm(nn.LayerNorm):
    """Normalise each word separately, as TNT does: (B*N, m, c) -> (B*N, m, c)."""

    def __init__(self, words: int, dim: int):
        super().__init__(dim)


class DropPath(nn.Module):
    """Drop a whole residual branch, independently for each entry of the batch axis.

    Kept branches are divided by the probability of being kept, which preserves the mean.

    Args:
        rate: Probability that a branch is dropped, in [0, 1).
    """

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, branch: Tensor) -> Tensor:
        """(B, ...) -> (B, ...)."""
        if not self.training or self.rate == 0.0:
            return branch
        keep = 1.0 - self.rate
        mask_shape = (branch.shape[0],) + (1,) * (branch.dim() - 1)
        mask = torch.empty(mask_shape, dtype=branch.dtype, device=branch.device).bernoulli_(keep)
        return branch * mask.div_(keep)

    def extra_repr(self) -> str:
        """Show the rate where the module is printed."""
        return f'rate={self.rate:.3g}'


def published_link(words: int, inner_dim: int, outer_dim: int) -> tuple[nn.Module, ...]:
    """Create the modules that project the words of a sentence to its width: norm, linear, norm."""
    linear = nn.Linear(words * inner_dim, outer_dim, bias=False)
    return SentenceNorm(words, inner_dim), linear, nn.LayerNorm(outer_dim)


def legacy_link(words: int, inner_dim: int, outer_dim: int) -> tuple[nn.Module, ...]:
    """Create the same for :class:`LegacyTNT`: a norm for each word, a bias, no second norm."""
    return WordNorm(words, inner_dim), nn.Linear(words * inner_dim, outer_dim), nn.Identity()


@dataclass(frozen=True)
class BlockOptions:
    """Options that all blocks of a backbone share."""

    attention: type[OuterAttention]
    """Class of the attention between sentences."""

    mlp_ratio: int
    """Hidden width of an MLP as a multiple of the token's width."""

    with_se: bool
    """Whether the outer MLP's output is gated by channel (squeeze and excitation)."""

    drop_rate: float
    """Dropout inside the MLPs and after the attention's projection."""

    attn_drop_rate: float
    """Dropout on attention weights."""

    qkv_bias: bool = False
    """Whether queries, keys and values have a bias."""

    words: int = WORDS
    """Inner tokens of an outer token."""

    word_norm: type[SentenceNorm] | type[WordNorm] = SentenceNorm
    """Normalisation of words before their attention and their MLP."""

    link: Callable[[int, int, int], tuple[nn.Module, ...]] = published_link
    """Creates the modules between words and their sentence."""

    class_tokens: int = 0
    """Outer tokens in front of the sentences that have no words: 1 with a class token."""

    def __post_init__(self):
        if not isinstance(self.mlp_ratio, int) or self.mlp_ratio < 1:
            raise ValueError(f'mlp_ratio is {self.mlp_ratio!r}: expected an integer above 0')


class Mlp(nn.Module):
    """Two linear layers with an exact GELU between."""

    def __init__(self, dim: int, hidden_dim: int, drop: float):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.drop = nn.Dropout(drop)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, N, C) -> (B, N, C)."""
        return self.drop(self.fc2(self.drop(self.act(self.fc1(tokens)))))


class SqueezeExcite(nn.Module):
    """Gate the channels of a sentence map by their mean over the image, and add it to itself.

    Off in every published variant (arXiv 2103.00112 describes it for TNT).
    """

    def __init__(self, dim: int, reduction: int = 4):
        super().__init__()
        self.fc = nn.Sequential(
            nn.LayerNorm(dim),
            nn.Linear(dim, dim // reduction),
            nn.ReLU(inplace=True),
            nn.Linear(dim // reduction, dim),
            nn.Tanh(),
        )

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, N, C) -> (B, N, C)."""
        gate = self.fc(tokens.mean(dim=1, keepdim=True))
        return tokens + gate * tokens


class OuterBlock(nn.Module):
    """A transformer over the sentences of an image; words pass through unchanged.

    Args:
        outer_dim: Channels of an outer token.
        outer_heads: Heads of the outer attention.
        sr_ratio: Side of the windows that outer keys are averaged over, in tokens.
        drop_path: Rate of dropping a residual branch.
        options: Options that all blocks of a backbone share.
        peg: Position encoding generator after the block, see :class:`PEG`.
    """

    def __init__(
        self,
        outer_dim: int,
        outer_heads: int,
        sr_ratio: int,
        drop_path: float,
        options: BlockOptions,
        peg: nn.Module | None = None,
    ):
        super().__init__()
        self.outer_norm1 = nn.LayerNorm(outer_dim)
        self.outer_attn = options.attention(
            outer_dim,
            outer_heads,
            sr_ratio,
            options.attn_drop_rate,
            options.drop_rate,
            options.qkv_bias,
        )
        self.outer_norm2 = nn.LayerNorm(outer_dim)
        self.outer_mlp = Mlp(outer_dim, outer_dim * options.mlp_ratio, options.drop_rate)
        self.se_layer = SqueezeExcite(outer_dim) if options.with_se else nn.Identity()
        self.drop_path = DropPath(drop_path)
        self.peg = peg

    def forward(
        self, inner: Tensor | None, outer: Tensor, hw: Grid, bias: Bias
    ) -> tuple[Tensor | None, Tensor]:
        """Inner (B*N, m, c), outer (B, n + N, C) -> the same.

        Args:
            inner: Words; None where there are none.
            outer: n class tokens, 0 or 1, and the sentences.
            hw: Grid of the sentences, in tokens.
            bias: Of the outer attention, from its ``prepare_bias``.
        """
        attended = self.outer_attn(self.outer_norm1(outer), hw, bias)
        outer = self._add(outer, self.drop_path(attended))
        branch = in_slices(self._mlp_branch, outer.flatten(0, 1), self.outer_mlp.fc1.out_features)
        outer = self._add(outer, self.drop_path(self.se_layer(branch[0].view_as(outer))))
        return inner, outer if self.peg is None else self.peg(outer, hw)

    def _add(self, tokens: Tensor, branch: Tensor) -> Tensor:
        """Add in place when autograd is off, as fresh memory is slow.

        Not in a trace: torch.jit.trace traces a second time without autograd, and expects the same
        graph. Not with forward hooks, which may keep ``branch``.
        """
        if (
            torch.is_grad_enabled()
            or torch.jit.is_tracing()
            or torch.compiler.is_compiling()
            or branch.dtype != tokens.dtype
            or any(module._forward_hooks for module in self.modules())
        ):
            return tokens + branch
        return branch.add_(tokens)

    def _mlp_branch(self, outer: Tensor) -> tuple[Tensor]:
        """(n, C) -> (n, C)."""
        return (self.outer_mlp(self.outer_norm2(outer)),)


class NestedBlock(OuterBlock):
    """A transformer inside each sentence, whose words are then added to the sentence.

    Args:
        inner_dim: Channels of an inner token.
        outer_dim: Channels of an outer token.
        inner_heads: Heads of the inner attention.
        outer_heads: Heads of the outer attention.
        sr_ratio: Side of the windows that outer keys are averaged over, in tokens.
        drop_path: Rate of dropping a residual branch.
        options: Options that all blocks of a backbone share.
        peg: Position encoding generator after the block, see :class:`PEG`.
    """

    def __init__(
        self,
        inner_dim: int,
        outer_dim: int,
        inner_heads: int,
        outer_heads: int,
        sr_ratio: int,
        drop_path: float,
        options: BlockOptions,
        peg: nn.Module | None = None,
    ):
        super().__init__(outer_dim, outer_heads, sr_ratio, drop_path, options, peg)
        self.class_tokens = options.class_tokens
        self.inner_norm1 = options.word_norm(options.words, inner_dim)
        self.inner_attn = InnerAttention(
            inner_dim, inner_heads, options.attn_drop_rate, options.drop_rate, options.qkv_bias
        )
        self.inner_norm2 = options.word_norm(options.words, inner_dim)
        self.inner_mlp = Mlp(inner_dim, inner_dim * options.mlp_ratio, options.drop_rate)
        link = options.link(options.words, inner_dim, outer_dim)
        self.proj_norm1, self.proj, self.proj_norm2 = link

    def forward(self, inner: Tensor, outer: Tensor, hw: Grid, bias: Bias) -> tuple[Tensor, Tensor]:
        """Inner (B*N, m, c), outer (B, n + N, C) with n class tokens -> the same."""
        width = inner.shape[1] * self.inner_mlp.fc1.out_features
        inner, summary = in_slices(self._inner, inner, width)
        outer = self._add(outer, self._of_sentences(summary, outer))
        return super().forward(inner, outer, hw, bias)

    def _inner(self, inner: Tensor) -> tuple[Tensor, Tensor]:
        """Words of n sentences (n, m, c) -> the same and their sum for each sentence (n, C)."""
        inner = inner + self.drop_path(self.inner_attn(self.inner_norm1(inner)))
        inner = inner + self.drop_path(self.inner_mlp(self.inner_norm2(inner)))
        # Words are added to their sentence without drop path, as published.
        return inner, self.proj_norm2(self.proj(self.proj_norm1(inner).flatten(1)))

    def _of_sentences(self, summary: Tensor, outer: Tensor) -> Tensor:
        """(B*N, C) -> as ``outer``, with zeros for tokens that have no words."""
        if not self.class_tokens:
            return summary.view_as(outer)
        return F.pad(summary.unflatten(0, (outer.shape[0], -1)), (0, 0, self.class_tokens, 0))


def run_block(
    block: OuterBlock,
    with_cp: bool,
    inner: Tensor | None,
    outer: Tensor,
    hw: Grid,
    bias: Bias,
) -> tuple[Tensor | None, Tensor]:
    """Call a block; with ``with_cp``, recompute its activations in the backward pass."""
    if with_cp and torch.is_grad_enabled() and not torch.jit.is_tracing():
        return checkpoint(block, inner, outer, hw, bias, use_reentrant=False)
    return block(inner, outer, hw, bias)
