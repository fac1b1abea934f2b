"""Record the feature maps and the attention of a network with forward hooks."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ptnt_mm.models.attention import Attention
from ptnt_mm.models.backbone import Backbone, find_trunk
from ptnt_mm.models.blocks import NestedBlock, OuterBlock
from ptnt_mm.models.kernels.forms import Form, attention_weights
from ptnt_mm.models.position_tables import Factors
from ptnt_mm.models.stages import Stage
from ptnt_mm.models.tokens import Grid, area, reduced, tokens_to_map, words_to_map

Calls = dict[nn.Module, list[tuple[tuple, Any]]]
"""By module, the arguments and the output of each call."""

Size = tuple[float, float]
"""Height and width in pixels of the image."""


_AT_ONCE = 256  # sentences whose attention is in memory at the same time


class Level(NamedTuple):
    """A feature map (C, h, w), and the size of its places."""

    name: str
    feature: np.ndarray
    cell: Size


class BlockRecord(NamedTuple):
    """A block of a backbone of this package, with its inputs and outputs for an image."""

    name: str
    module: OuterBlock
    stage: Stage | None  # None in a single-scale backbone
    class_tokens: int
    cell: Size  # of a sentence
    hw: Grid  # of the sentences
    outer: Tensor  # after the block, (1, n + N, C) with n class tokens
    words: Tensor | None  # after a block that changes them, (N, m, c)
    queries: Tensor  # input of the outer attention, (1, n + N, C)
    form: Form  # of the outer attention
    inner_queries: Tensor | None  # input of the inner attention, (N, m, c), if it is attention

    @property
    def is_known(self) -> bool:
        """Whether its outer attention is that of a form whose weights are known here."""
        return hasattr(self.form, 'added')

    @property
    def key_hw(self) -> Grid:
        """Grid of the outer attention's keys."""
        return reduced(self.hw, self.module.outer_attn.sr_ratio)

    def sentences_in_place(self) -> Level:
        """The sentences as a map (C, h, w), without class tokens."""
        sentences = tokens_to_map(self.outer[:, self.class_tokens :], self.hw)
        return Level(self.name, as_numpy(sentences[0]), self.cell)

    def words_in_place(self) -> Level:
        """The words of all sentences as one map, (c, s*h, s*w) for s*s words in a sentence."""
        side = math.isqrt(self.words.shape[1])
        words = words_to_map(self.words, self.hw, side)
        return Level(self.name, as_numpy(words[0]), tuple(length / side for length in self.cell))

    def attention(self, sentences: Sequence[int], with_table: bool = True) -> Tensor:
        """The attention of sentences to each key, their mean, (heads, n + M).

        Args:
            sentences: Indices of sentences, counted row by row; -1 is the class token.
            with_table: Whether to add the relative position table.
        """
        weights = self._weights(sentences, with_table)
        return sum(part.sum(dim=1) for part in weights) / len(sentences)

    def attention_matrix(self) -> Tensor:
        """The attention of each sentence to each key, mean of the heads, (N, M)."""
        weights = self._weights(range(area(self.hw)))
        return torch.cat([part.mean(dim=0) for part in weights])[:, self.class_tokens :]

    def _weights(self, sentences: Sequence[int], with_table: bool = True) -> Iterator[Tensor]:
        """The attention of some sentences at a time, (heads, k, n + M)."""
        attention = self.module.outer_attn
        with torch.no_grad():
            keys = attention.key_tokens(self.queries, self.hw)
            for part in torch.as_tensor(sentences).split(_AT_ONCE):
                rows = self.class_tokens + part
                q, k, _ = attention.project(self.queries[:, rows], keys)
                bias = self.bias_of(rows) if with_table else None
                yield attention_weights(q, k, bias)[0]

    def bias_of(self, tokens: Sequence[int]) -> Tensor | None:
        """The bias of the table on the logits of tokens, (1, heads, k, M), if there is one."""
        project = self.module.outer_attn.project
        rows = torch.as_tensor(tokens)
        return self.form.added(rows, lambda: project(self.queries, self.queries)[0])

    def inner_attention(self, sentence: int) -> Tensor:
        """The attention of each word of a sentence to each of its words, (heads, m, m)."""
        words = self.inner_queries[sentence : sentence + 1]
        with torch.no_grad():
            q, k, _ = self.module.inner_attn.project(words, words)
            return attention_weights(q, k, None)[0]

    def tables(self) -> tuple[Tensor, Tensor] | None:
        """The table, mean of its heads: (N_pre, M_pre) as learned, and resized (N, M).

        None without a table that is resized by factors.
        """
        if self.stage is None or self.stage.relative_pos is None:
            return None
        with torch.no_grad():
            # Resizing is linear, so it commutes with the mean.
            table = self.stage.relative_pos.mean(dim=1, keepdim=True)
            factors = self.stage.relative_position.between(table, self.hw, self.key_hw)
            return (table[0, 0], factors.bias()[0, 0]) if isinstance(factors, Factors) else None


class Recording(NamedTuple):
    """The blocks and feature maps of a network for one image."""

    blocks: list[BlockRecord]  # of a backbone of this package; empty for any other
    maps: list[Level]  # outputs of any other backbone
    necks: list[Level]  # outputs of each part of the neck
    chosen: Sequence[int] = ()  # blocks that the reader chose, from 1

    def chosen_blocks(self) -> list[BlockRecord]:
        """The chosen blocks; else the last of each stage, or the first, middle and last of one."""
        last = len(self.blocks) - 1
        if self.blocks and self.chosen:
            return [self.blocks[number - 1] for number in self.chosen]
        if self.blocks and self.blocks[0].stage is None:
            return [self.blocks[i] for i in sorted({0, last // 2, last})]
        return list({block.stage: block for block in self.blocks}.values())

    def nested(self) -> list[BlockRecord]:
        """The blocks with words: all of a pyramid, otherwise the shown ones, or the chosen ones."""
        pyramid = [block for block in self.blocks if block.stage is not None and not self.chosen]
        return [block for block in pyramid or self.chosen_blocks() if block.words is not None]

    def stages(self) -> list[Level]:
        """The maps after the shown blocks, or the outputs of a different backbone."""
        return [block.sentences_in_place() for block in self.chosen_blocks()] or self.maps


def record(model: nn.Module, run: Callable, pixels: Tensor, ratio: Size) -> Recording:
    """Run a network on an image, and record its blocks and feature maps.

    Args:
        model: A model in evaluation mode, with a ``backbone`` or a backbone of this package.
        run: Computes its feature maps, up to the neck.
        pixels: The network's input, (1, 3, H, W).
        ratio: Pixels of the input for each pixel of the image, along y and x.
    """
    trunk, neck = find_trunk(model), getattr(model, 'neck', None)
    necks = neck if isinstance(neck, nn.Sequential) else filter(None, [neck])
    parts = [*necks] if trunk is not None else [model.backbone, *necks]
    calls: Calls = defaultdict(list)

    def keep(module: nn.Module, arguments: tuple, output: Any) -> None:
        calls[module].append((arguments, output))

    with ExitStack() as hooks, torch.no_grad():
        for module in model.modules():
            if isinstance(module, (OuterBlock, Attention)) or module in parts:
                hooks.callback(module.register_forward_hook(keep).remove)
        run(pixels)
    extent = tuple(length / scale for length, scale in zip(pixels.shape[2:], ratio, strict=True))
    levels = {part: list(_levels(part, calls, extent)) for part in parts}
    maps = [] if trunk is not None else levels.pop(model.backbone)
    blocks = [] if trunk is None else list(_blocks(trunk, calls, ratio))
    return Recording(blocks, maps, sum(levels.values(), []))


def as_numpy(tensor: Tensor) -> np.ndarray:
    """Return a tensor from any device, in float32."""
    return tensor.detach().float().cpu().numpy()


def _levels(part: nn.Module, calls: Calls, extent: Size) -> Iterator[Level]:
    """The maps (1, C, h, w) among the outputs of a part; ``extent`` is the size that each covers.

    Vectors, such as those of a classifier's neck, are skipped, and so is a part that did not run.
    """
    maps = [feature for _, output in calls[part][:1] for feature in _maps(output)]
    for i, feature in enumerate(maps, start=1):
        cell = tuple(length / n for length, n in zip(extent, feature.shape[2:], strict=True))
        yield Level(f'{type(part).__name__}, level {i}', as_numpy(feature[0]), cell)


def _maps(output: Any) -> Iterator[Tensor]:
    """The tensors (1, C, h, w) in an output, however it is nested."""
    match output:
        case Tensor():
            if output.dim() == 4 and len(output) == 1:
                yield output
        case dict():
            yield from _maps(list(output.values()))
        case list() | tuple():
            for part in output:
                yield from _maps(part)


def _blocks(trunk: Backbone, calls: Calls, ratio: Size) -> Iterator[BlockRecord]:
    """The blocks of a backbone, counted from 1."""
    one_scale, number = not hasattr(trunk, 'stages'), 0
    for i, stage in enumerate([trunk] if one_scale else trunk.stages):
        for module in stage.blocks:
            number += 1
            [((*_, hw, _), (words, outer))] = calls[module]
            [((queries, _, form), _)] = calls[module.outer_attn]
            if not isinstance(module, NestedBlock):
                words = None
            inner_queries = None
            if words is not None and isinstance(module.inner_attn, Attention):
                [((inner_queries,), _)] = calls[module.inner_attn]
            yield BlockRecord(
                name=f'block {number}' if one_scale else f'stage {i + 1}, block {number}',
                module=module,
                stage=None if one_scale else stage,
                class_tokens=trunk.class_tokens,
                cell=tuple(trunk.patch * 2**i / scale for scale in ratio),
                hw=hw,
                outer=outer,
                words=words,
                queries=queries,
                form=form,
                inner_queries=inner_queries,
            )
