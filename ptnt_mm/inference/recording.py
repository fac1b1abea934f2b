"""What passes through a network while it looks at an image, kept by hooks."""

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ptnt_mm.models.backbone import Backbone
from ptnt_mm.models.layers.attention import Attention, Position
from ptnt_mm.models.layers.block import NestedBlock, OuterBlock
from ptnt_mm.models.layers.position import Factors
from ptnt_mm.models.layers.shapes import Grid, reduced, tokens_to_map, words_to_map
from ptnt_mm.models.layers.stage import Stage
from ptnt_mm.models.plain import PlainBackbone

Size = tuple[float, float]
"""Height and width in pixels of the image."""

Box = tuple[float, float, float, float]
"""Left, right, bottom and top in pixels of the image."""


class Level(NamedTuple):
    """A feature map (C, h, w), and the size of its places."""

    name: str
    feature: np.ndarray
    cell: Size


@dataclass(frozen=True)
class BlockRecord:
    """A block of one of our backbones, and what an image left behind in it."""

    name: str
    module: OuterBlock
    stage: Stage | None  # None in a backbone of one scale
    class_tokens: int
    cell: Size  # of a sentence
    hw: Grid  # of the sentences
    outer: Tensor  # behind the block, (1, n + N, C) with n class tokens
    words: Tensor | None  # behind the block, (N, m, c)
    queries: Tensor  # what the outer attention gets, (1, n + N, C)
    position: Position  # likewise
    inner_queries: Tensor | None  # what the inner attention gets, (N, m, c)

    @property
    def key_hw(self) -> Grid:
        """Grid of the outer attention's keys."""
        return reduced(self.hw, self.module.outer_attn.sr_ratio)

    @property
    def key_cell(self) -> Size:
        """Of a key of the outer attention."""
        return tuple(length * self.module.outer_attn.sr_ratio for length in self.cell)

    def sentence_at(self, x: float, y: float) -> tuple[int, int, Box]:
        """Row and column of the sentence with a pixel of the image, and its place there."""
        height, width = self.cell
        row, column = min(int(y / height), self.hw[0] - 1), min(int(x / width), self.hw[1] - 1)
        return row, column, (column * width, (column + 1) * width, (row + 1) * height, row * height)

    def sentences_in_place(self) -> Level:
        """The sentences as a map, without class tokens."""
        tokens = self.outer[:, self.class_tokens :]
        return Level(self.name, as_numpy(tokens_to_map(tokens, self.hw)[0]), self.cell)

    def words_in_place(self) -> Level:
        """The words of all sentences as one map, (c, s*h, s*w) for s*s words in a sentence."""
        side = math.isqrt(self.words.shape[1])
        words = words_to_map(self.words, self.hw, side)[0]
        return Level(self.name, as_numpy(words), tuple(length / side for length in self.cell))

    def attention(self, sentence: int, with_table: bool = True) -> Tensor:
        """What a sentence takes from each key, (heads, n + M), computed as the model does.

        Args:
            sentence: Counted row by row; -1 is the class token.
            with_table: Whether the relative position table takes part.
        """
        token = self.class_tokens + sentence
        with torch.no_grad():
            keys = self.module.outer_attn.key_tokens(self.queries, self.hw)
            query = self.queries[:, token : token + 1]
            q, k, _ = self.module.outer_attn.project(query, keys)
            return _weights(q, k, self.bias(sentence) if with_table else None)[0, :, 0]

    def bias(self, sentence: int) -> Tensor | None:
        """What the table adds to a sentence's logits, (1, heads, 1, M); None without a table."""
        row = slice(sentence, sentence + 1)
        if isinstance(self.position, Factors):
            return self.position._replace(queries=self.position.queries[:, :, row]).bias()
        return None if self.position is None else self.position[:, :, row]

    def inner_attention(self, sentence: int) -> Tensor:
        """What each word of a sentence takes from each of them, (heads, m, m)."""
        words = self.inner_queries[sentence : sentence + 1]
        with torch.no_grad():
            q, k, _ = self.module.inner_attn.project(words, words)
            return _weights(q, k, None)[0]

    def tables(self) -> tuple[Tensor, Tensor]:
        """The table, mean of its heads: (N_pre, M_pre) as learned, and resized (N, M)."""
        with torch.no_grad():
            # Resizing is linear: the resized mean is the mean of the resized.
            table = self.stage.relative_pos.mean(dim=1, keepdim=True)
            factors = self.stage.position.factors(table, self.hw, self.key_hw)
            return table[0, 0], factors.bias()[0, 0]


class Recording(NamedTuple):
    """What an image left behind in a network."""

    blocks: list[BlockRecord]
    """Of our backbone; none if it is another one."""

    maps: dict[str, list[Level]]
    """What the backbone and each part of its neck returned."""

    def shown(self) -> list[BlockRecord]:
        """The last block of each stage; the first, middle and last of a backbone of one scale."""
        number = len(self.blocks)
        if number and self.blocks[0].stage is None:
            return [self.blocks[i] for i in sorted({0, (number - 1) // 2, number - 1})]
        return list({block.stage: block for block in self.blocks}.values())

    def nested(self) -> list[BlockRecord]:
        """The blocks with words: of a pyramid all, otherwise the shown ones."""
        pyramid = [block for block in self.blocks if block.stage is not None]
        return [block for block in pyramid or self.shown() if block.words is not None]

    def stages(self) -> list[Level]:
        """The maps behind the shown blocks, or what another backbone returned."""
        own = [block.sentences_in_place() for block in self.shown()]
        return own or self.maps.get('backbone', [])

    def necks(self) -> list[Level]:
        """All maps of the neck."""
        return [level for name in self.maps if name != 'backbone' for level in self.maps[name]]


def record(model: nn.Module, pixels: Tensor, ratio: Size) -> Recording:
    """Run the backbone and the neck of a model on an image, and keep what passes.

    Args:
        model: In evaluation mode.
        pixels: What it gets of the image, (1, 3, H, W).
        ratio: Pixels of it for each pixel of the image, along y and x.
    """
    trunk, parts = find_trunk(model), dict(_parts(model))
    calls = defaultdict(list)

    def keep(module: nn.Module, arguments: tuple, output: object) -> None:
        calls[module].append((arguments, output))

    with ExitStack() as hooks, torch.no_grad():
        for module in model.modules():
            if isinstance(module, (OuterBlock, Attention)) or module in parts.values():
                hooks.callback(module.register_forward_hook(keep).remove)
        getattr(model, 'extract_feat', model)(pixels)
    maps = {
        name: list(_levels(name, calls[part][0][1], pixels, ratio))
        for name, part in parts.items()
        if part in calls
    }
    return Recording([] if trunk is None else list(_blocks(trunk, calls, ratio)), maps)


def find_trunk(model: nn.Module) -> Backbone | None:
    """The backbone of ours in a model, or None."""
    return next((module for module in model.modules() if isinstance(module, Backbone)), None)


def as_numpy(tensor: Tensor) -> np.ndarray:
    """A tensor from any device, in float32."""
    return tensor.detach().float().cpu().numpy()


def _parts(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The backbone and the neck; of necks in a row, each."""
    backbone, neck = (getattr(model, name, None) for name in ('backbone', 'neck'))
    if backbone is not None:
        yield 'backbone', backbone
    for part in neck if isinstance(neck, nn.Sequential) else filter(None, [neck]):
        yield type(part).__name__, part


def _levels(
    name: str, output: Tensor | tuple[Tensor, ...], pixels: Tensor, ratio: Size
) -> Iterator[Level]:
    for number, feature in enumerate([output] if isinstance(output, Tensor) else output, start=1):
        sides = zip(pixels.shape[2:], feature.shape[2:], ratio, strict=True)
        cell = tuple(whole / places / scale for whole, places, scale in sides)
        yield Level(f'{name}, level {number}', as_numpy(feature[0]), cell)


def _blocks(trunk: Backbone, calls: dict[nn.Module, list], ratio: Size) -> Iterator[BlockRecord]:
    """The blocks of a backbone, counted from 1."""
    is_plain, number = isinstance(trunk, PlainBackbone), 0
    for i, stage in enumerate([trunk] if is_plain else trunk.stages):
        for module in stage.blocks:
            number += 1
            is_nested = isinstance(module, NestedBlock)
            [((_, _, hw, _), (words, outer))] = calls[module]
            [((queries, _, position), _)] = calls[module.outer_attn]
            yield BlockRecord(
                f'block {number}' if is_plain else f'stage {i + 1}, block {number}',
                module,
                None if is_plain else stage,
                trunk.class_tokens if is_plain else 0,
                tuple(trunk.patch * 2**i / scale for scale in ratio),
                hw,
                outer,
                words if is_nested else None,
                queries,
                position,
                # On a CPU it is called once for each slice of the sentences.
                torch.cat([given[0] for given, _ in calls[module.inner_attn]])
                if is_nested
                else None,
            )


def _weights(q: Tensor, k: Tensor, bias: Tensor | None) -> Tensor:
    """(B, heads, N, d), (B, heads, M, d) -> (B, heads, N, M), each row adds up to 1."""
    logits = (q * q.shape[-1] ** -0.5) @ k.mT
    return (logits if bias is None else logits + bias).softmax(dim=-1)
