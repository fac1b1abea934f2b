"""The inner transformer of a block as one Triton kernel in each direction (ours).

Chosen by ``PyramidTNT(..., inner='triton')``; nothing else imports this module or Triton. No GPU
has measured it yet.

PyTorch runs an inner transformer as separate operators, each of which reads and writes all words.
Here a program keeps a sentence of 16 words on the chip from the first norm to the last::

    words = words + attention(norm1(words))
    words = words + mlp(norm2(words))
    normed = norm3(words)

Only ``words`` and ``normed`` are written. The backward pass, of two kernels because the registers
do not suffice for one, recomputes the rest. Its programs go through their sentences in a fixed
order and write partial sums of the weights' gradients, which are added up afterwards: without
atomic operations, results repeat.

Tiles have sides of powers of two, so channels are padded with zeros. Sums, softmax and norms are in
float32, and the operands of products have the type of the words. Loops keep their invariants inside
(``disable_licm``): the places of all weights, computed in advance, take more registers than exist.

In the comments of kernels, ``R`` are the 16 words of a sentence, ``C`` the channels of a word,
``D`` those of a head and ``U`` a group of hidden units, the last three padded.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import knobs

from ptnt_mm.models.blocks import NestedBlock
from ptnt_mm.models.kernels.forms import is_captured_for_export
from ptnt_mm.models.tokens import WORDS

TYPES = (torch.float32, torch.bfloat16, torch.float16)
"""Types of words that the kernels take."""

PROGRAMS = 256
"""Most programs of the backward pass, about two for each multiprocessor of a large GPU. A constant,
so that every GPU adds in the same order."""

SIDE = 16
"""Smallest side of a product's operands."""

OPTIONS = dict(num_warps=4, num_stages=1, maxnreg=255)
"""Of all kernels. The largest number of registers, where the assembler would sometimes choose fewer
and spill; a pipeline of several stages would need more."""

_WORDS = tl.constexpr(WORDS)
_SIDE = tl.constexpr(SIDE)


class TritonNestedBlock(NestedBlock):
    """A nested block of PyramidTNT whose inner transformer is one kernel, without dropout.

    It has the parameters of :class:`NestedBlock` and takes the same arguments. A graph for another
    runtime contains PyTorch's operators.
    """

    def _inner(self, inner: Tensor) -> tuple[Tensor, Tensor]:
        """Words of n sentences (n, 16, c) -> the same, and projected to their sentences (n, C)."""
        if is_captured_for_export():
            return super()._inner(inner)
        weights = torch.cat([weight.flatten() for weight in self._inner_weights()])
        kept, drop_path = None, self.drop_path
        if drop_path.drops:
            kept = drop_path.draw((2, len(inner)), inner).div_(1 - drop_path.rate)
        heads, units = self.inner_attn.num_heads, self.inner_mlp.fc1.out_features
        eps = self.inner_norm1.eps
        inner, normed = inner_transformer(inner, weights, kept, heads, units, eps)
        return inner, self.proj_norm2(self.proj(normed.flatten(1)))

    def _inner_weights(self) -> list[Tensor]:
        """The parameters that the kernels read, in the order of :func:`_offsets`."""
        attention, mlp = self.inner_attn, self.inner_mlp
        return [
            *(self.inner_norm1.weight, self.inner_norm1.bias),
            *(attention.q.weight, attention.kv.weight),
            *(attention.proj.weight, attention.proj.bias),
            *(self.inner_norm2.weight, self.inner_norm2.bias),
            *(mlp.fc1.weight, mlp.fc1.bias, mlp.fc2.weight, mlp.fc2.bias),
            *(self.proj_norm1.weight, self.proj_norm1.bias),
        ]


@triton.jit
def _offsets(channels, units):
    """Where each part of the weights begins.

    Queries, keys and values are consecutive rows of one (3c, c) matrix, and a norm's bias follows
    its scale.
    """
    norm1 = 0
    qkv = norm1 + 2 * _WORDS * channels
    proj = qkv + 3 * channels * channels
    proj_bias = proj + channels * channels
    norm2 = proj_bias + channels
    fc1 = norm2 + 2 * _WORDS * channels
    fc1_bias = fc1 + units * channels
    fc2 = fc1_bias + units
    fc2_bias = fc2 + channels * units
    norm3 = fc2_bias + channels
    return norm1, qkv, proj, proj_bias, norm2, fc1, fc1_bias, fc2, fc2_bias, norm3


@triton.jit
def _product(a, b, like):
    """(M, K), (K, N) -> (M, N) in float32, of operands in the type of ``like``."""
    dtype: tl.constexpr = like.dtype.element_ty
    return tl.dot(a.to(dtype), b.to(dtype), input_precision='tf32x3')


@triton.jit
def _mean(tile, channels):
    """The mean over all words of a sentence (R, C), whose padded channels are 0."""
    return tl.sum(tl.sum(tile, 1), 0) / (_WORDS * channels)


@triton.jit
def _norm_places(at, channels, column):
    """Places of a norm's gains (R, C), and which are channels (1, C)."""
    word = tl.arange(0, _WORDS)
    return at + word[:, None] * channels + column[None, :], (column < channels)[None, :]


@triton.jit
def _standardise(tile, channels, column, eps):
    """(R, C) -> the same with mean 0 and variance 1, and 1 / deviation."""
    centred = tl.where((column < channels)[None, :], tile - _mean(tile, channels), 0.0)
    scale = 1 / tl.sqrt(_mean(centred * centred, channels) + eps)
    return centred * scale, scale


@triton.jit
def _norm(tile, weights, at, channels, column, eps):
    """JointWordNorm: (R, C) -> (R, C)."""
    places, real = _norm_places(at, channels, column)
    gain = tl.load(weights + places, real, 0.0).to(tl.float32)
    shift = tl.load(weights + places + _WORDS * channels, real, 0.0).to(tl.float32)
    standard, _ = _standardise(tile, channels, column, eps)
    return standard * gain + shift


@triton.jit
def _norm_backward(grad, tile, weights, sums, at, channels, column, eps, again):
    """The gradient of a norm's input (R, C); adds those of its weights to ``sums``."""
    places, real = _norm_places(at, channels, column)
    gain = tl.load(weights + places, real, 0.0).to(tl.float32)
    standard, scale = _standardise(tile, channels, column, eps)
    _add(sums + places, grad * standard, real, again)
    _add(sums + places + _WORDS * channels, grad, real, again)
    grad = grad * gain
    along = standard * _mean(grad * standard, channels)
    return scale * tl.where(real, grad - _mean(grad, channels) - along, 0.0)


@triton.jit
def _add(places, values, real, again):
    """Add to a program's sums, or set them: before its first sentence they are undefined."""
    before = tl.load(places, tl.where(again, real, False), 0.0)
    tl.store(places, before + values, real)


@triton.jit
def _head_places(at, head, channels, column, HEADS: tl.constexpr):
    """Places of a head's rows in the matrix of queries, keys or values, and which exist: (D, C)."""
    width = channels // HEADS
    row = tl.arange(0, _SIDE)
    real = (row < width)[:, None] & (column < channels)[None, :]
    return at + (head * width + row)[:, None] * channels + column[None, :], real


@triton.jit
def _proj_places(at, head, channels, column, HEADS: tl.constexpr):
    """Places of a head's columns in the output projection, and which exist: (C, D)."""
    width = channels // HEADS
    row = tl.arange(0, _SIDE)
    real = (column < channels)[:, None] & (row < width)[None, :]
    return at + column[:, None] * channels + (head * width + row)[None, :], real


@triton.jit
def _attend(normed, words, weights, qkv, head, channels, column, HEADS: tl.constexpr):
    """Queries, keys and values of a head (R, D), and its weights (R, R)."""
    places, real = _head_places(qkv, head, channels, column, HEADS)
    step = channels * channels
    q = _product(normed, tl.trans(tl.load(weights + places, real, 0.0)), words)
    k = _product(normed, tl.trans(tl.load(weights + places + step, real, 0.0)), words)
    v = _product(normed, tl.trans(tl.load(weights + places + 2 * step, real, 0.0)), words)
    q = q / tl.sqrt((channels // HEADS).to(tl.float32))
    logits = _product(q, tl.trans(k), words)
    exponents = tl.exp(logits - tl.max(logits, 1)[:, None])
    return q, k, v, exponents / tl.sum(exponents, 1)[:, None]


@triton.jit
def _attention(normed, words, weights, qkv, proj, proj_bias, channels, column, HEADS: tl.constexpr):
    """Attention inside each sentence with its projections: (R, C) -> (R, C)."""
    bias = tl.load(weights + proj_bias + column, column < channels, 0.0).to(tl.float32)
    out = tl.zeros_like(normed) + bias[None, :]
    for head in tl.range(HEADS, disable_licm=True):
        _, _, v, attention = _attend(normed, words, weights, qkv, head, channels, column, HEADS)
        mixed = _product(attention, v, words)  # (R, D)
        places, real = _proj_places(proj, head, channels, column, HEADS)
        out += _product(mixed, tl.trans(tl.load(weights + places, real, 0.0)), words)
    return out


@triton.jit
def _attention_backward(
    grad, normed, words, weights, sums, qkv, proj, proj_bias, channels, column, again,
    HEADS: tl.constexpr,
):  # fmt: skip
    """The gradient of the attention's input (R, C); adds those of its weights to ``sums``."""
    _add(sums + proj_bias + column, tl.sum(grad, 0), column < channels, again)
    out = tl.zeros_like(normed)
    for head in tl.range(HEADS, disable_licm=True):
        q, k, v, attention = _attend(normed, words, weights, qkv, head, channels, column, HEADS)
        mixed = _product(attention, v, words)  # (R, D)
        places, real = _proj_places(proj, head, channels, column, HEADS)
        mixed_grad = _product(grad, tl.load(weights + places, real, 0.0), words)
        _add(sums + places, _product(tl.trans(grad), mixed, words), real, again)
        v_grad = _product(tl.trans(attention), mixed_grad, words)
        logit_grad = attention * _product(mixed_grad, tl.trans(v), words)
        logit_grad -= attention * tl.sum(logit_grad, 1)[:, None]
        scale = 1 / tl.sqrt((channels // HEADS).to(tl.float32))
        k_grad = _product(tl.trans(logit_grad), q, words)  # q is already scaled
        q_grad = _product(logit_grad, k, words) * scale
        places, real = _head_places(qkv, head, channels, column, HEADS)
        step = channels * channels
        out += _product(q_grad, tl.load(weights + places, real, 0.0), words)
        _add(sums + places, _product(tl.trans(q_grad), normed, words), real, again)
        out += _product(k_grad, tl.load(weights + places + step, real, 0.0), words)
        _add(sums + places + step, _product(tl.trans(k_grad), normed, words), real, again)
        out += _product(v_grad, tl.load(weights + places + 2 * step, real, 0.0), words)
        _add(sums + places + 2 * step, _product(tl.trans(v_grad), normed, words), real, again)
    return out


@triton.jit
def _hidden(normed, words, weights, fc1, fc1_bias, first, units, channels, column):
    """Sixteen hidden units before their GELU (R, U), and the places of their weights (U, C)."""
    unit = first + tl.arange(0, _SIDE)
    real = (unit < units)[:, None] & (column < channels)[None, :]
    places = fc1 + unit[:, None] * channels + column[None, :]
    bias = tl.load(weights + fc1_bias + unit, unit < units, 0.0).to(tl.float32)
    hidden = _product(normed, tl.trans(tl.load(weights + places, real, 0.0)), words)
    return hidden + bias[None, :], places, real


@triton.jit
def _fc2_places(fc2, first, units, channels, column):
    """Places of sixteen hidden units' columns in the second layer, and which exist: (C, U)."""
    unit = first + tl.arange(0, _SIDE)
    real = (column < channels)[:, None] & (unit < units)[None, :]
    return fc2 + column[:, None] * units + unit[None, :], real


@triton.jit
def _mlp(normed, words, weights, fc1, fc1_bias, fc2, fc2_bias, units, channels, column):
    """Two linear layers with an exact GELU between: (R, C) -> (R, C)."""
    bias = tl.load(weights + fc2_bias + column, column < channels, 0.0).to(tl.float32)
    out = tl.zeros_like(normed) + bias[None, :]
    for first in tl.range(0, units, _SIDE, disable_licm=True):
        hidden, _, _ = _hidden(
            normed, words, weights, fc1, fc1_bias, first, units, channels, column
        )
        active = hidden * 0.5 * (1 + tl.erf(hidden * 0.7071067811865476))
        places, real = _fc2_places(fc2, first, units, channels, column)
        out += _product(active, tl.trans(tl.load(weights + places, real, 0.0)), words)
    return out


@triton.jit
def _mlp_backward(
    grad, normed, words, weights, sums, fc1, fc1_bias, fc2, fc2_bias, units, channels, column,
    again,
):  # fmt: skip
    """The gradient of the MLP's input (R, C); adds those of its weights to ``sums``."""
    _add(sums + fc2_bias + column, tl.sum(grad, 0), column < channels, again)
    out = tl.zeros_like(normed)
    for first in tl.range(0, units, _SIDE, disable_licm=True):
        hidden, fc1_places, fc1_real = _hidden(
            normed, words, weights, fc1, fc1_bias, first, units, channels, column
        )
        below = 0.5 * (1 + tl.erf(hidden * 0.7071067811865476))  # normal distribution
        density = 0.3989422804014327 * tl.exp(-0.5 * hidden * hidden)
        places, real = _fc2_places(fc2, first, units, channels, column)
        active_grad = _product(grad, tl.load(weights + places, real, 0.0), words)  # (R, U)
        _add(sums + places, _product(tl.trans(grad), hidden * below, words), real, again)
        hidden_grad = active_grad * (below + hidden * density)
        unit = first + tl.arange(0, _SIDE)
        _add(sums + fc1_bias + unit, tl.sum(hidden_grad, 0), unit < units, again)
        _add(
            sums + fc1_places,
            _product(tl.trans(hidden_grad), normed, words),
            fc1_real,
            again,
        )
        out += _product(hidden_grad, tl.load(weights + fc1_places, fc1_real, 0.0), words)
    return out


@triton.jit
def _word_places(sentence, channels, column):
    """Places of a sentence's words (R, C), and which are channels (1, C)."""
    word = tl.cast(sentence, tl.int64) * _WORDS + tl.arange(0, _WORDS)
    return word[:, None] * channels + column[None, :], (column < channels)[None, :]


@triton.jit
def _factor(kept, sentence, HAS_KEPT: tl.constexpr):
    """The factor of a residual branch: 1 without stochastic depth."""
    if HAS_KEPT:
        return tl.load(kept + sentence).to(tl.float32)
    else:
        return 1.0


@triton.jit
def forward_kernel(
    words, weights, kept, new_words, normed, sentences, channels, units, eps,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, HAS_KEPT: tl.constexpr,
):  # fmt: skip
    """One sentence: words (sentences, 16, channels) -> new words and their third norm.

    ``WIDTH`` are the channels with their padding.
    """
    norm1, qkv, proj, proj_bias, norm2, fc1, fc1_bias, fc2, fc2_bias, norm3 = _offsets(
        channels, units
    )
    column = tl.arange(0, WIDTH)
    sentence = tl.program_id(0)
    places, real = _word_places(sentence, channels, column)
    x = tl.load(words + places, real, 0.0).to(tl.float32)
    branch = _attention(
        _norm(x, weights, norm1, channels, column, eps),
        words, weights, qkv, proj, proj_bias, channels, column, HEADS,
    )  # fmt: skip
    x += branch * _factor(kept, sentence, HAS_KEPT)
    branch = _mlp(
        _norm(x, weights, norm2, channels, column, eps),
        words, weights, fc1, fc1_bias, fc2, fc2_bias, units, channels, column,
    )  # fmt: skip
    x += branch * _factor(kept + sentences, sentence, HAS_KEPT)
    tl.store(new_words + places, x, real)
    tl.store(normed + places, _norm(x, weights, norm3, channels, column, eps), real)


@triton.jit
def mlp_backward_kernel(
    words_grad, normed_grad, words, weights, kept, grad, sums, sentences, channels, units, eps,
    size,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, HAS_KEPT: tl.constexpr,
):  # fmt: skip
    """From the outputs' gradients to that of the words between attention and MLP, ``grad``.

    Program p of P takes the sentences p, p + P, p + 2 P, ... It writes a row of ``sums``
    (programs, size): the gradients of the MLP and its two norms.
    """
    norm1, qkv, proj, proj_bias, norm2, fc1, fc1_bias, fc2, fc2_bias, norm3 = _offsets(
        channels, units
    )
    program = tl.program_id(0)
    sums += program * size
    for sentence in tl.range(program, sentences, tl.num_programs(0), disable_licm=True):
        again = sentence != program
        column = tl.arange(0, WIDTH)
        places, real = _word_places(sentence, channels, column)
        x = tl.load(words + places, real, 0.0).to(tl.float32)
        branch = _attention(
            _norm(x, weights, norm1, channels, column, eps),
            words, weights, qkv, proj, proj_bias, channels, column, HEADS,
        )  # fmt: skip
        x += branch * _factor(kept, sentence, HAS_KEPT)
        normed = _norm(x, weights, norm2, channels, column, eps)
        branch = _mlp(normed, words, weights, fc1, fc1_bias, fc2, fc2_bias, units, channels, column)
        factors = _factor(kept + sentences, sentence, HAS_KEPT)
        last = x + branch * factors

        g = tl.load(normed_grad + places, real, 0.0).to(tl.float32)
        g = _norm_backward(g, last, weights, sums, norm3, channels, column, eps, again)
        g += tl.load(words_grad + places, real, 0.0).to(tl.float32)
        branch = _mlp_backward(
            g * factors, normed, words, weights, sums, fc1, fc1_bias, fc2, fc2_bias, units,
            channels, column, again,
        )  # fmt: skip
        g += _norm_backward(branch, x, weights, sums, norm2, channels, column, eps, again)
        tl.store(grad + places, g, real)
        tl.debug_barrier()  # in the next pass, a thread may read sums that another has written


@triton.jit
def attention_backward_kernel(
    words_grad, words, weights, kept, grad, sums, sentences, channels, units, eps, size,
    WIDTH: tl.constexpr, HEADS: tl.constexpr, HAS_KEPT: tl.constexpr,
):  # fmt: skip
    """From the gradient of the words between attention and MLP to that of the first, ``grad``.

    Sentences and sums are as in :func:`mlp_backward_kernel`: here the gradients of the
    attention's weights.
    """
    norm1, qkv, proj, proj_bias, _, _, _, _, _, _ = _offsets(channels, units)
    program = tl.program_id(0)
    sums += program * size
    for sentence in tl.range(program, sentences, tl.num_programs(0), disable_licm=True):
        again = sentence != program
        column = tl.arange(0, WIDTH)
        places, real = _word_places(sentence, channels, column)
        x = tl.load(words + places, real, 0.0).to(tl.float32)
        g = tl.load(words_grad + places, real, 0.0).to(tl.float32)
        branch = _attention_backward(
            g * _factor(kept, sentence, HAS_KEPT),
            _norm(x, weights, norm1, channels, column, eps),
            words, weights, sums, qkv, proj, proj_bias, channels, column, again, HEADS,
        )  # fmt: skip
        g += _norm_backward(branch, x, weights, sums, norm1, channels, column, eps, again)
        tl.store(grad + places, g, real)
        tl.debug_barrier()


def _check(words: Tensor) -> None:
    """Raise a ValueError for words that the kernels cannot take."""
    if not words.is_cuda and not knobs.runtime.interpret:
        raise ValueError(
            f"inner='triton' needs a CUDA device, but the words are on {words.device}: move model "
            "and images there, or choose inner='torch', which has the same weights"
        )
    if words.dtype not in TYPES:
        raise ValueError(
            f"inner='triton' takes float32, bfloat16 or float16, but got {words.dtype}: use one of "
            "them, or choose inner='torch'"
        )


def _constants(words: Tensor, kept: Tensor | None, heads: int) -> dict[str, int | bool]:
    width = max(SIDE, triton.next_power_of_2(words.shape[2]))
    return dict(WIDTH=width, HEADS=heads, HAS_KEPT=kept is not None)


@torch.library.custom_op('ptnt_mm::inner_transformer', mutates_args=())
def inner_transformer(
    words: Tensor, weights: Tensor, kept: Tensor | None, heads: int, units: int, eps: float
) -> tuple[Tensor, Tensor]:
    """Run an inner transformer without its last projection; differentiable once.

    Args:
        words: Words of n sentences (n, 16, c).
        weights: Its parameters, flattened, in the order of :func:`_offsets`.
        kept: Factors of both residual branches of each sentence (2, n), or None for 1.
        heads: Heads of the attention.
        units: Hidden units of the MLP.
        eps: Added to the variances of norms.

    Returns:
        The words and their norm, both (n, 16, c).

    Raises:
        ValueError: for words that are not on a GPU, or not of one of :data:`TYPES`.
    """
    _check(words)
    words = words.contiguous()
    new_words, normed = torch.empty_like(words), torch.empty_like(words)
    sentences, _, channels = words.shape
    forward_kernel[(sentences,)](
        *(words, weights, kept, new_words, normed, sentences, channels, units, eps),
        **_constants(words, kept, heads),
        **OPTIONS,
    )
    return new_words, normed


@torch.library.custom_op('ptnt_mm::inner_transformer_backward', mutates_args=())
def _backward_operator(
    words_grad: Tensor,
    normed_grad: Tensor,
    words: Tensor,
    weights: Tensor,
    kept: Tensor | None,
    heads: int,
    units: int,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Gradients of words (n, 16, c), and partial sums of those of weights (programs, size)."""
    words = words.contiguous()
    sentences, _, channels = words.shape
    between, grad = torch.empty_like(words), torch.empty_like(words)
    sums = _new_sums(words, weights)
    grid, constants = (len(sums),), _constants(words, kept, heads)
    sizes = (sentences, channels, units, eps, weights.numel())
    grads = words_grad.contiguous(), normed_grad.contiguous()
    mlp_backward_kernel[grid](
        *(*grads, words, weights, kept, between, sums), *sizes, **constants, **OPTIONS
    )
    attention_backward_kernel[grid](
        *(between, words, weights, kept, grad, sums), *sizes, **constants, **OPTIONS
    )
    return grad, sums


def _new_sums(words: Tensor, weights: Tensor) -> Tensor:
    programs = torch.sym_min(PROGRAMS, words.shape[0])
    return weights.new_empty(programs, weights.numel(), dtype=torch.float32)


@inner_transformer.register_fake
def _(words, weights, kept, heads, units, eps):
    return words.new_empty(words.shape), words.new_empty(words.shape)


@_backward_operator.register_fake
def _(words_grad, normed_grad, words, weights, kept, heads, units, eps):
    return words.new_empty(words.shape), _new_sums(words, weights)


def _keep_for_backward(ctx, inputs, output):
    words, weights, kept, *ctx.settings = inputs
    ctx.save_for_backward(words, weights, kept)


def _backward(ctx, words_grad, normed_grad):
    _, weights, _ = ctx.saved_tensors
    grad, sums = _backward_operator(words_grad, normed_grad, *ctx.saved_tensors, *ctx.settings)
    return grad, sums.sum(0).to(weights.dtype), None, None, None, None


inner_transformer.register_autograd(_backward, setup_context=_keep_for_backward)
