"""What recordings show, as rows of panels: maps, words, attention, position tables, t-SNE."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from ptnt_mm.inference.recording import BlockRecord, Level, Recording, Size, as_numpy
from ptnt_mm.models.layers.shapes import Grid
from ptnt_mm.visualization.panels import Box, Panel, PanelRow, Points, around, from_zero

Levels = Callable[[Recording], list[Level]]

_OPACITY = 0.7  # over an image

_necks = attrgetter('necks')


class Scene(NamedTuple):
    """An image, what networks made of it, and what is asked of them."""

    image: np.ndarray  # (H, W, 3) uint8, RGB
    recordings: dict[str, Recording]  # by what headings call them; '' for the only one
    query: tuple[float, float]  # a pixel (x, y) of the sentence whose attention is shown
    channels: Sequence[int] = ()  # those to show; if there are none, those that vary most

    def panel(self, title: str, values: np.ndarray, cell: Size, **options: Any) -> Panel:
        """A map over the image, whose places have this size."""
        place = (0, values.shape[1] * cell[1], values.shape[0] * cell[0], 0)
        return Panel(title, self.image, values, place, **options)

    def sentence(self, block: BlockRecord) -> tuple[int, Box]:
        """The number of the queried sentence, and its place."""
        (x, y), (height, width), (h, w) = self.query, block.cell, block.hw
        row, column = min(int(y / height), h - 1), min(int(x / width), w - 1)
        place = (column * width, (column + 1) * width, (row + 1) * height, row * height)
        return row * w + column, place


class Section(NamedTuple):
    """A figure: the name of its file, how to read it, and how the rows of a recording are made."""

    name: str
    title: str
    text: str
    rows_of: Callable[[Scene, Recording], Iterator[PanelRow]]

    def rows(self, scene: Scene) -> list[PanelRow]:
        """The rows of all recordings, like ones together; none if there is nothing of the kind."""
        made = (self.rows_of(scene, recording) for recording in scene.recordings.values())
        return [
            row._replace(heading=f'{label}: {row.heading}' if label else row.heading)
            for rows in zip_longest(*made)
            for label, row in zip(scene.recordings, rows, strict=True)
            if row is not None
        ]


def _colours(levels_of: Levels, scene: Scene, recording: Recording) -> Iterator[PanelRow]:
    coloured = [(level, *to_colours(level.feature)) for level in levels_of(recording)]
    for first in range(0, len(coloured), 4):
        for opacity, heading in ((1.0, 'maps'), (_OPACITY, 'maps over the image')):
            panels = [Panel('image', scene.image)]
            for level, colours, kept in coloured[first : first + 4]:
                title = _title(level, '\n') + f'\n{kept:.0%} of the variance'
                panels.append(scene.panel(title, colours, level.cell, opacity=opacity))
            yield PanelRow(heading, panels)


def _channels(levels_of: Levels, scene: Scene, recording: Recording) -> Iterator[PanelRow]:
    for level in levels_of(recording):
        yield PanelRow(_title(level), _some_channels(scene, level, 6))


def _words(scene: Scene, recording: Recording) -> Iterator[PanelRow]:
    for block in recording.nested():
        level = block.words_in_place()
        mean, (colours, kept) = level.feature.mean(axis=0), to_colours(level.feature)
        scale = around(0, 'activation', mean)
        panels = [
            scene.panel('mean of the channels', mean, level.cell, scale=scale),
            scene.panel(f'three colours, {kept:.0%}', colours, level.cell),
            *_some_channels(scene, level, 3),
        ]
        yield PanelRow(_title(level), panels)


def _attention(scene: Scene, recording: Recording) -> Iterator[PanelRow]:
    for block in recording.shown():
        sentence, place = scene.sentence(block)
        attention, bias = block.module.outer_attn, block.bias(sentence)
        maps = {'attention': block.attention(sentence)}
        if bias is not None:
            maps['without the table'] = block.attention(sentence, with_table=False)
        if block.class_tokens:
            maps['attention of the class token'] = block.attention(-1)
        maps = {title: _on_keys(block, 100 * heads) for title, heads in maps.items()}
        cell = tuple(length * attention.sr_ratio for length in block.cell)
        over = dict(cell=cell, opacity=_OPACITY, frame=place)
        scale = from_zero('attention (%)', *maps.values())
        panels = [scene.panel(title, values, scale=scale, **over) for title, values in maps.items()]
        if bias is not None:
            added = _on_keys(block, bias[0, :, 0])
            scale = around(0, 'added to the logits', added)
            panels.append(scene.panel('what the table adds', added, scale=scale, **over))
        yield PanelRow(f'{block.name}: {_averaged(attention.num_heads)}', panels)


def _inner_attention(scene: Scene, recording: Recording) -> Iterator[PanelRow]:
    for block in recording.nested():
        sentence, place = scene.sentence(block)
        weights = 100 * as_numpy(block.inner_attention(sentence))
        pairs, words = weights.mean(axis=0), weights.shape[-1]
        hw = (math.isqrt(words),) * 2
        received, taken = pairs.mean(axis=0).reshape(hw), _tiles(pairs, hw, hw)
        left, right, bottom, top = place
        near = (2 * left - right, 2 * right - left, 2 * bottom - top, 2 * top - bottom)
        # An even share is white, and both have one scale.
        over = dict(place=place, scale=around(100 / words, 'attention (%)', taken))
        panels = [
            Panel('the sentence', scene.image, frame=place, view=near),
            Panel('taken from each word', scene.image, received, frame=place, view=near, **over),
            Panel('taken by each word', scene.image, taken, tiles=hw, view=place, **over),
        ]
        yield PanelRow(f'{block.name}: {_averaged(len(weights))}', panels)


def _tables(scene: Scene, recording: Recording) -> Iterator[PanelRow]:
    for block in recording.shown():
        if block.position is not None:
            learned, resized = map(as_numpy, block.tables())
            # Pretraining images are square.
            hw, key_hw = ((math.isqrt(tokens),) * 2 for tokens in learned.shape)
            height, width = (n * length for n, length in zip(block.hw, block.cell, strict=True))
            over = dict(
                place=(0, width, height, 0), scale=around(0, 'added to the logits', learned)
            )
            before, after = _tiles(learned, hw, key_hw), _tiles(resized, block.hw, block.key_hw)
            panels = [
                Panel(f'as learned: {_size(hw)} sentences', scene.image, before, tiles=hw, **over),
                Panel(f'resized: {_size(block.hw)}', scene.image, after, tiles=block.hw, **over),
            ]
            stage = block.name.partition(',')[0]
            yield PanelRow(f'{stage}: {_averaged(block.module.outer_attn.num_heads)}', panels)


def _points(scene: Scene, recording: Recording) -> Iterator[PanelRow]:
    panels = []
    for level in recording.stages():
        spread = level.feature.std(axis=(1, 2))
        scale = from_zero('standard deviation', spread)
        panels.append(Points(_title(level, '\n'), scatter_channels(level.feature), spread, scale))
    yield PanelRow('every point is a channel', panels)


_COLOURS = (
    'All channels, reduced to three by PCA and shown as red, green and blue: like colours, like '
    'features, within one map. The percentage is the share of the variance that is kept.'
)
_CHANNELS = (
    'The channels that vary most over the image, or the chosen ones, counted from 0. Activations '
    'have no unit; each row has a scale of its own.'
)

SECTIONS = (
    Section('stages', 'Stages in three colours', _COLOURS, partial(_colours, Recording.stages)),
    Section('channels', 'Channels of the stages', _CHANNELS, partial(_channels, Recording.stages)),
    Section('neck', 'Neck in three colours', _COLOURS, partial(_colours, _necks)),
    Section('neck_channels', 'Channels of the neck', _CHANNELS, partial(_channels, _necks)),
    Section(
        'words',
        'Words',
        'The words behind each nested block, put back in place as one map: the mean of their '
        'channels, as in the TNT paper, all channels in three colours, and those that vary most.',
        _words,
    ),
    Section(
        'attention',
        'Attention of a sentence',
        'How the outlined sentence divides its attention over the map; a class token, where there '
        'is one, takes what is left of 100 %. The first stages of a pyramid look at averages of '
        'neighbouring sentences. Without the relative position table, queries and keys are '
        'compared by their content alone.',
        _attention,
    ),
    Section(
        'inner_attention',
        'Inner attention of its words',
        'How the words of the outlined sentence divide their attention among each other; white is '
        'an even share. On the right, each word has a map of what it takes from all words.',
        _inner_attention,
    ),
    Section(
        'tables',
        'Relative position tables',
        'What each stage learned to add to the logits of every sentence and key. In the place of '
        'each sentence is a small map of all keys: on the grid of the pretraining images, and '
        'resized to the grid of this image.',
        _tables,
    ),
    Section(
        'tsne',
        't-SNE of the channels',
        'Every point is a channel of the sentences, as in the TNT paper. Channels with like maps '
        'are near each other; places and distances mean nothing else.',
        _points,
    ),
)
"""All that is drawn, in this order."""


def _some_channels(scene: Scene, level: Level, number: int) -> list[Panel]:
    """The chosen channels or, without any, those that vary most."""
    chosen = [c for c in scene.channels if c < len(level.feature)]
    chosen = chosen or np.argsort(-level.feature.std(axis=(1, 2)), kind='stable')[:number]
    scale = around(0, 'activation', level.feature[chosen])
    return [scene.panel(f'channel {c}', level.feature[c], level.cell, scale=scale) for c in chosen]


def _on_keys(block: BlockRecord, heads: Tensor) -> np.ndarray:
    """The mean of heads (heads, n + M) on the grid of the keys."""
    return as_numpy(heads.mean(dim=0)[block.class_tokens :]).reshape(block.key_hw)


def _tiles(pairs: np.ndarray, hw: Grid, key_hw: Grid) -> np.ndarray:
    """(h*w, i*j) -> (h*i, w*j): in the place of each token, a map of its keys."""
    grid = pairs.reshape(*hw, *key_hw).swapaxes(1, 2)
    return grid.reshape(hw[0] * key_hw[0], hw[1] * key_hw[1])


def _averaged(heads: int) -> str:
    return f'{heads} heads, averaged' if heads > 1 else '1 head'


def _title(level: Level, separator: str = ': ') -> str:
    channels, *hw = level.feature.shape
    return f'{level.name}{separator}{channels} channels, {_size(hw)}'


def _size(hw: Sequence[int]) -> str:
    return f'{hw[0]} x {hw[1]}'


def to_colours(feature: np.ndarray) -> tuple[np.ndarray, float]:
    """The first three principal components as red, green and blue: (C, h, w) -> (h, w, 3).

    Each from its 1st to its 99th percentile; with the share of the variance that they keep.
    """
    # Imported when it is used: only the extra `vis` brings it.
    from sklearn.decomposition import PCA

    places = feature.reshape(len(feature), -1).T
    colours, kept = np.full((len(places), 3), 0.5), 0.0
    if np.ptp(places, axis=0).any():
        pca = PCA(min(3, len(feature), len(places) - 1)).fit(places)
        components, kept = pca.transform(places), pca.explained_variance_ratio_.sum()
        low, high = np.percentile(components, (1, 99), axis=0)
        scaled = (components - low) / np.maximum(high - low, 1e-9)
        colours[:, : pca.n_components_] = scaled.clip(0, 1)
    return colours.reshape(*feature.shape[1:], 3), float(kept)


def scatter_channels(feature: np.ndarray) -> np.ndarray:
    """Places of channels in the plane, near if their maps are alike: (C, h, w) -> (C, 2)."""
    from sklearn.manifold import TSNE

    channels = feature.reshape(len(feature), -1)
    perplexity = min(30, (len(channels) - 1) / 3)
    return TSNE(perplexity=perplexity, init='random', random_state=0).fit_transform(channels)
