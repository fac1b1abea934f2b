"""The blocks of a network, after their parts: norms, stochastic depth, MLPs.

An outer block is a transformer over the sentences of an image. A nested one has another
transformer in front of it, over the words of each sentence.
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ptnt_mm.models.attention import InnerAttention, OuterAttention
from ptnt_mm.models.kernels.forms import Form
from ptnt_mm.models.kernels.memory import in_slices
from ptnt_mm.models.tokens import WORDS, Grid
from ptnt_mm.utils.numbers import is_integer, is_number


def _group_norm(channels: int, num_groups: int = 0, eps: float = 1e-5) -> nn.GroupNorm:
    if not is_integer(num_groups) or num_groups < 1 or channels % num_groups:
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


def conv_norm_relu(
    in_channels: int, out_channels: int, stride: int, norm_cfg: dict
) -> tuple[nn.Module, ...]:
    """The layers of a convolutional stem: 3 x 3 with padding 1, a norm, ReLU."""
    return (
        nn.Conv2d(in_channels, out_channels, 3, stride, padding=1),
        build_norm(norm_cfg, out_channels),
        nn.ReLU(inplace=True),
    )


def is_batch_norm(module: nn.Module) -> bool:
    """Whether a module keeps running statistics of its inputs."""
    return isinstance(module, nn.modules.batchnorm._BatchNorm)


class JointWordNorm(nn.LayerNorm):
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


class NarrowNorm(nn.LayerNorm):
    """Normalise tokens of a few channels: (..., C) -> (..., C).

    A GPU's kernel runs a block of threads for each token, most of them idle: for 8 channels,
    elementwise operators are 7 times as fast (measured, see ``docs/research/performance.md``).
    """

    most_channels = 16
    """Largest width at which they are faster in a training step, too."""

    def forward(self, tokens: Tensor) -> Tensor:
        """(..., C) -> (..., C)."""
        if tokens.device.type == 'cpu' or self.normalized_shape[0] > self.most_channels:
            return super().forward(tokens)
        return self.elementwise(tokens)

    def elementwise(self, tokens: Tensor) -> Tensor:
        """As :meth:`forward`, computed in float32, or in float64 for such tokens."""
        wide = tokens if tokens.dtype == torch.float64 else tokens.float()
        variance, mean = torch.var_mean(wide, dim=-1, correction=0, keepdim=True)
        normal = (wide - mean) * (variance + self.eps).rsqrt()
        return torch.addcmul(self.bias, normal, self.weight).to(tokens.dtype)


class DropPath(nn.Module):
    """Add a residual branch that is sometimes dropped, independently for each entry of the batch.

    Kept branches are divided by the probability of being kept, which preserves the mean.

    Args:
        rate: Probability that a branch is dropped, in [0, 1).
    """

    def __init__(self, rate: float):
        super().__init__()
        self.rate = rate

    def forward(self, tokens: Tensor, branch: Tensor) -> Tensor:
        """Tokens (B, ...) plus their branch (B, ...) where it is kept -> (B, ...)."""
        if not self.training or self.rate == 0:
            return tokens + branch
        kept = branch.new_empty((branch.shape[0],) + (1,) * (branch.dim() - 1))
        kept.bernoulli_(1 - self.rate)
        return torch.addcmul(tokens, branch, kept, value=1 / (1 - self.rate))

    def extra_repr(self) -> str:
        """Show the rate where the module is printed."""
        return f'rate={self.rate:.3g}'


def _hidden_dim(dim: int, mlp_ratio: float) -> int:
    """The hidden width of an MLP for tokens of ``dim`` channels, rounded down."""
    if not is_number(mlp_ratio) or not 1 <= dim * mlp_ratio < math.inf:
        raise ValueError(
            f'mlp_ratio is {mlp_ratio!r}: expected a number such as 4; {dim} times that is the '
            'hidden width, which must be at least 1'
        )
    return int(dim * mlp_ratio)


class Mlp(nn.Module):
    """Two linear layers with an exact GELU between."""

    def __init__(self, dim: int, hidden_dim: int, drop: float):
        super().__init__()
        self.hidden_dim = hidden_dim
        self.fc1 = nn.Linear(dim, hidden_dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden_dim, dim)
        self.drop = nn.Dropout(drop)

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, N, C) -> (B, N, C), in slices where that is faster; layers see tokens (n, C)."""
        rows = in_slices(self._forward, tokens.flatten(0, 1), self.hidden_dim)
        return rows.view_as(tokens)

    def _forward(self, rows: Tensor) -> Tensor:
        """(n, C) -> (n, C)."""
        return self.drop(self.fc2(self.drop(self.act(self.fc1(rows)))))


class SqueezeExcite(nn.Module):
    """Gate the channels of a sentence map by their mean over the image, and add it to itself.

    Off in every published variant (arXiv 2103.00112 describes it for TNT).

    Raises:
        ValueError: for fewer channels than ``reduction``.
    """

    def __init__(self, dim: int, reduction: int = 4):
        super().__init__()
        if dim < reduction:
            raise ValueError(f'with_se: an outer width of {dim} is below its reduction {reduction}')
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
    """A transformer over the sentences of an image.

    Args:
        outer_dim: Channels of an outer token.
        outer_heads: Heads of the outer attention.
        eager: Whether the outer attention is the published form, see :class:`OuterAttention`.
        sr_ratio: Side of the windows that outer keys are averaged over, in tokens.
        qkv_bias: Whether queries, keys and values have a bias.
        mlp_ratio: Hidden width of the MLP as a multiple of the token's width.
        with_se: Whether the MLP's output is gated by channel (squeeze and excitation).
        drop_rate: Dropout inside the MLP and after the attention's projection.
        attn_drop_rate: Dropout on attention weights.
        drop_path: Rate of dropping a residual branch.
        peg: Position encoding generator after the block, see :class:`PEG`.

    Raises:
        ValueError: if ``mlp_ratio`` is not a number above 0.
    """

    def __init__(
        self,
        outer_dim: int,
        outer_heads: int,
        *,
        eager: bool = False,
        sr_ratio: int = 1,
        qkv_bias: bool = False,
        mlp_ratio: float = 4,
        with_se: bool = False,
        drop_rate: float = 0.0,
        attn_drop_rate: float = 0.0,
        drop_path: float = 0.0,
        peg: nn.Module | None = None,
    ):
        super().__init__()
        self.outer_norm1 = nn.LayerNorm(outer_dim)
        self.outer_attn = OuterAttention(
            outer_dim, outer_heads, attn_drop_rate, drop_rate, qkv_bias, sr_ratio, eager
        )
        self.outer_norm2 = nn.LayerNorm(outer_dim)
        self.outer_mlp = Mlp(outer_dim, _hidden_dim(outer_dim, mlp_ratio), drop_rate)
        self.se_layer = SqueezeExcite(outer_dim) if with_se else nn.Identity()
        self.drop_path = DropPath(drop_path)
        self.peg = peg

    def forward(
        self, inner: Tensor | None, outer: Tensor, hw: Grid, form: Form
    ) -> tuple[Tensor | None, Tensor]:
        """Inner (B*N, m, c) or None, outer (B, n + N, C) -> the same.

        Args:
            inner: The words, which stay as they are.
            outer: n class tokens, 0 or 1, and the sentences.
            hw: Grid of the sentences, in tokens.
            form: Of the outer attention, from :meth:`OuterAttention.form`.
        """
        attended = self.outer_attn(self.outer_norm1(outer), hw, form)
        outer = self.drop_path(outer, attended)
        mixed = self.se_layer(self.outer_mlp(self.outer_norm2(outer)))
        outer = self.drop_path(outer, mixed)
        return inner, outer if self.peg is None else self.peg(outer, hw)


def word_to_sentence(words: int, inner_dim: int, outer_dim: int) -> tuple[nn.Module, ...]:
    """Create the modules that project the words of a sentence to its width: norm, linear, norm."""
    linear = nn.Linear(words * inner_dim, outer_dim, bias=False)
    return JointWordNorm(words, inner_dim), linear, nn.LayerNorm(outer_dim)


class NestedBlock(OuterBlock):
    """A transformer inside each sentence, whose words are then added to the sentence.

    Args:
        inner_dim: Channels of an inner token.
        outer_dim: Channels of an outer token.
        inner_heads: Heads of the inner attention.
        outer_heads: Heads of the outer attention.
        eager: Whether both attentions are the published form, see :class:`OuterAttention`.
        sr_ratio: Side of the windows that outer keys are averaged over, in tokens.
        mlp_ratio: Hidden width of an MLP as a multiple of the token's width.
        with_se: Whether the outer MLP's output is gated by channel (squeeze and excitation).
        drop_rate: Dropout inside the MLPs and after the attention's projection.
        attn_drop_rate: Dropout on attention weights.
        drop_path: Rate of dropping a residual branch.
        peg: Position encoding generator after the block, see :class:`PEG`.
        words: Inner tokens of an outer token.
        word_norm: Normalisation of words before their attention and their MLP.
        new_projection: Creates the modules between words and their sentence.
        class_tokens: Outer tokens in front of the sentences that have no words, 0 or 1.

    Raises:
        ValueError: if ``mlp_ratio`` is not a number above 0.
    """

    mixer: type[nn.Module] = InnerAttention
    """The layer that mixes the words of a sentence: (B*N, m, c) -> (B*N, m, c).

    It is built from its channels, its heads, both rates of dropout, and the keyword ``eager``.
    """

    def __init__(
        self,
        inner_dim: int,
        outer_dim: int,
        inner_heads: int,
        outer_heads: int,
        *,
        eager: bool = False,
        sr_ratio: int = 1,
        mlp_ratio: float = 4,
        with_se: bool = False,
        drop_rate: float = 0.0,
        attn_drop_rate: float = 0.0,
        drop_path: float = 0.0,
        peg: nn.Module | None = None,
        words: int = WORDS,
        word_norm: type[JointWordNorm] | type[WordNorm] = JointWordNorm,
        new_projection: Callable[[int, int, int], tuple[nn.Module, ...]] = word_to_sentence,
        class_tokens: int = 0,
    ):
        super().__init__(
            outer_dim,
            outer_heads,
            eager=eager,
            sr_ratio=sr_ratio,
            mlp_ratio=mlp_ratio,
            with_se=with_se,
            drop_rate=drop_rate,
            attn_drop_rate=attn_drop_rate,
            drop_path=drop_path,
            peg=peg,
        )
        self.class_tokens = class_tokens
        self.inner_norm1 = word_norm(words, inner_dim)
        self.inner_attn = self.mixer(inner_dim, inner_heads, attn_drop_rate, drop_rate, eager=eager)
        self.inner_norm2 = word_norm(words, inner_dim)
        self.inner_mlp = Mlp(inner_dim, _hidden_dim(inner_dim, mlp_ratio), drop_rate)
        projection = new_projection(words, inner_dim, outer_dim)
        self.proj_norm1, self.proj, self.proj_norm2 = projection

    def forward(self, inner: Tensor, outer: Tensor, hw: Grid, form: Form) -> tuple[Tensor, Tensor]:
        """Inner (B*N, m, c), outer (B, n + N, C) with n class tokens -> the same, both changed."""
        inner = self.drop_path(inner, self.inner_attn(self.inner_norm1(inner)))
        inner = self.drop_path(inner, self.inner_mlp(self.inner_norm2(inner)))
        projected = self.proj_norm2(self.proj(self.proj_norm1(inner).flatten(1)))
        # Words are added to their sentence without drop path, as published.
        outer = outer + self._pad_class_tokens(projected, outer)
        return super().forward(inner, outer, hw, form)

    def _pad_class_tokens(self, projected: Tensor, outer: Tensor) -> Tensor:
        """(B*N, C) -> as ``outer``, with zeros for tokens that have no words."""
        batch, tokens, _ = outer.shape
        by_image = projected.unflatten(0, (batch, tokens - self.class_tokens))
        return F.pad(by_image, (0, 0, self.class_tokens, 0)) if self.class_tokens else by_image
