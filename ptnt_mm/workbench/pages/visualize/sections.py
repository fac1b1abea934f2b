"""Recordings as rows of panels: maps, similarity, words, attention, position tables, t-SNE."""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from ptnt_mm.models.tokens import Grid, area
from ptnt_mm.workbench.pages.visualize.panels import (
    Panel,
    PanelRow,
    Points,
    Scale,
    around,
    from_zero,
)
from ptnt_mm.workbench.pages.visualize.recording import (
    BlockRecord,
    Level,
    Recording,
    Size,
    as_numpy,
)
from ptnt_mm.workbench.pages.visualize.scene import RecordedScene

_MOST_POINTS = 512
_MOST_PAIRS = 2**22  # of sentences and keys


class Section(NamedTuple):
    """A section of the page: an explanation of its panels, and the function that draws them."""

    name: str
    title: str
    text: str
    rows_of: Callable[[RecordedScene, Recording], Iterator[PanelRow]]
    is_open: bool = True  # when the page is opened

    def rows(self, scene: RecordedScene) -> list[PanelRow]:
        """The rows of all recordings in turn; empty if the section applies to no network."""
        made = (self.rows_of(scene, recording) for recording in scene.recordings.values())
        return [
            row._replace(heading=f'{label}: {row.heading}' if label else row.heading)
            for rows in zip_longest(*made)
            for label, row in zip(scene.recordings, rows, strict=True)
            if row is not None
        ]


def _colours(scene: RecordedScene, recording: Recording) -> Iterator[PanelRow]:
    for heading, levels in _parts(recording):
        panels = []
        for level in levels:
            colours, kept = to_colours(level.feature)
            title = f'{_title(level)}, {kept:.0%} of the variance'
            panels.append(_over_image(title, colours, level.cell))
        yield PanelRow(heading, panels)


def _similarity(scene: RecordedScene, recording: Recording) -> Iterator[PanelRow]:
    scale = Scale('cosine similarity', -1, 1, 'RdBu_r')
    for heading, levels in _parts(recording):
        panels = []
        for level in levels:
            covered = scene.choice.covers(level.feature.shape[1:], level.cell)
            similar = similarity(level.feature, covered)
            panels.append(_over_image(_title(level), similar, level.cell, scale=scale))
        yield PanelRow(heading, panels)


def _channels(scene: RecordedScene, recording: Recording) -> Iterator[PanelRow]:
    for _, levels in _parts(recording):
        for level in levels:
            yield PanelRow(_title(level), _some_channels(scene, level, 6))


def _words(scene: RecordedScene, recording: Recording) -> Iterator[PanelRow]:
    for block in recording.nested():
        level = block.words_in_place()
        mean, (colours, kept) = level.feature.mean(axis=0), to_colours(level.feature)
        scale = around(0, 'activation', mean)
        panels = [
            _over_image('mean of the channels', mean, level.cell, scale=scale),
            _over_image(f'three colours, {kept:.0%}', colours, level.cell),
            *_some_channels(scene, level, 3),
        ]
        yield PanelRow(_title(level), panels)


def _attention(scene: RecordedScene, recording: Recording) -> Iterator[PanelRow]:
    for block in recording.chosen_blocks():
        if not block.is_known:
            kind = type(block.form).__name__
            yield PanelRow(f'{block.name}: the attention of {kind} cannot be drawn', [])
            continue
        sentences, place = scene.sentences(block)
        attention, bias = block.module.outer_attn, block.bias_of(sentences)
        maps = {'attention (%)': block.attention(sentences)}
        if bias is not None:
            maps['without the table (%)'] = block.attention(sentences, with_table=False)
        if block.class_tokens:
            maps['attention of the class token (%)'] = block.attention([-1])
        maps = {title: _on_keys(block, 100 * heads) for title, heads in maps.items()}
        cell = tuple(length * attention.sr_ratio for length in block.cell)
        over = dict(cell=cell, frame=place)
        scale = from_zero('attention (%)', *maps.values())
        panels = [_over_image(title, values, scale=scale, **over) for title, values in maps.items()]
        if bias is not None:
            added = _on_keys(block, bias[0].mean(dim=1))
            scale = around(0, 'added to the logits', added)
            panels.append(_over_image('addition to the logits', added, scale=scale, **over))
        number = f'{len(sentences)} sentences, ' if len(sentences) > 1 else ''
        yield PanelRow(f'{block.name}: {number}{_averaged(attention.num_heads)}', panels)


def _all_attention(scene: RecordedScene, recording: Recording) -> Iterator[PanelRow]:
    for block in recording.chosen_blocks():
        if not block.is_known or area(block.hw) * area(block.key_hw) > _MOST_PAIRS:
            continue
        matrix = 100 * as_numpy(block.attention_matrix())
        scale = from_zero('attention (%)', matrix)
        tiles, (sentence, place) = _tiles(matrix, block.hw, block.key_hw), scene.sentence(block)
        height, width = (n * length for n, length in zip(block.hw, block.cell, strict=True))
        over = dict(place=(0, 0, width, height), scale=scale)
        panels = [
            Panel(f'{_size(matrix.shape)} sentences and keys', matrix, **over),
            Panel('a map of the keys for each sentence', tiles, tiles=block.hw, **over),
        ]
        cell = tuple(length * block.module.outer_attn.sr_ratio for length in block.cell)
        heads = 100 * block.attention([sentence])
        scale = from_zero('attention (%)', as_numpy(heads[:, block.class_tokens :]))
        panels += [
            _over_image(f'head {i}', _on_keys(block, head[None]), cell, scale=scale, frame=place)
            for i, head in enumerate(heads, start=1)
        ]
        yield PanelRow(f'{block.name}: {_averaged(len(heads))}, then each head', panels)


def _inner_attention(scene: RecordedScene, recording: Recording) -> Iterator[PanelRow]:
    for block in recording.nested():
        if block.inner_queries is None:
            kind = type(block.module.inner_attn).__name__
            yield PanelRow(f'{block.name}: words are mixed by {kind}, without attention', [])
            continue
        sentence, place = scene.sentence(block)
        weights = 100 * as_numpy(block.inner_attention(sentence))
        pairs, words = weights.mean(axis=0), weights.shape[-1]
        hw = (math.isqrt(words),) * 2
        received, taken = pairs.mean(axis=0).reshape(hw), _tiles(pairs, hw, hw)
        x, y, width, height = place
        near = (x - width, y - height, 3 * width, 3 * height)
        # An even share is white, and both have the same scale.
        over = dict(place=place, scale=around(100 / words, 'attention (%)', taken))
        panels = [
            Panel('the sentence', frame=place, view=near),
            Panel('attention to each word (%)', received, frame=place, view=near, **over),
            Panel('attention of each word (%)', taken, tiles=hw, view=place, **over),
        ]
        yield PanelRow(f'{block.name}: {_averaged(len(weights))}', panels)


def _tables(scene: RecordedScene, recording: Recording) -> Iterator[PanelRow]:
    for block in recording.chosen_blocks():
        if tables := block.tables():
            learned, resized = map(as_numpy, tables)
            # Pretraining images are square.
            hw, key_hw = ((math.isqrt(tokens),) * 2 for tokens in learned.shape)
            height, width = (n * length for n, length in zip(block.hw, block.cell, strict=True))
            over = dict(
                place=(0, 0, width, height), scale=around(0, 'added to the logits', learned)
            )
            before, after = _tiles(learned, hw, key_hw), _tiles(resized, block.hw, block.key_hw)
            panels = [
                Panel(f'as learned: {_size(hw)} sentences', before, tiles=hw, **over),
                Panel(f'resized: {_size(block.hw)}', after, tiles=block.hw, **over),
            ]
            stage = block.name.partition(',')[0]
            yield PanelRow(f'{stage}: {_averaged(block.module.outer_attn.num_heads)}', panels)


def _points(scene: RecordedScene, recording: Recording) -> Iterator[PanelRow]:
    panels = []
    for level in recording.stages():
        spread = level.feature.std(axis=(1, 2))
        # A ResNet's map would take a minute, for points that hide each other.
        shown = np.argsort(-spread, kind='stable')[:_MOST_POINTS]
        scale = from_zero('standard deviation', spread)
        positions = scatter_channels(level.feature[shown])
        panels.append(Points(_title(level), positions, spread[shown], scale))
    if panels:
        yield PanelRow('every point is a channel, coloured by its standard deviation', panels)


SECTIONS = (
    Section(
        'colours',
        'Three colours',
        'All channels, reduced to three by PCA and shown as red, green and blue. Similar colours '
        'mean similar features within a map. The percentage is the share of the variance that is '
        'kept.',
        _colours,
    ),
    Section(
        'similarity',
        'Similarity',
        'The cosine similarity of the features at each place to those of the outlined place, after '
        'subtracting the mean of the map: red is similar, blue is the opposite.',
        _similarity,
    ),
    Section(
        'attention',
        'Attention',
        'How the outlined sentences divide their attention over the map, on average; a class '
        'token, if there is one, takes the rest of the 100 %. The first stages of a pyramid attend '
        'to averages of neighbouring sentences. Without the relative position table, queries and '
        'keys are compared only by their content.',
        _attention,
    ),
    Section(
        'all_attention',
        'Attention of all sentences',
        'The attention of every sentence, a row, to every key, a column; the same as a map of the '
        'keys in the place of each sentence; and the maps of the outlined sentence, head by head. '
        f'Omitted for more than {_MOST_PAIRS:,} pairs: use a smaller image.',
        _all_attention,
        is_open=False,
    ),
    Section(
        'words',
        'Words',
        'The words after each nested block, put back in place as one map: the mean of their '
        'channels, as in the TNT paper, all channels in three colours, and single channels.',
        _words,
    ),
    Section(
        'channels',
        'Channels',
        'The channels that vary most over the image, those that stand out at the chosen pixel or '
        'box, or the chosen ones. They are counted from 0. Activations have no unit, and '
        'each row has its own scale.',
        _channels,
        is_open=False,
    ),
    Section(
        'inner_attention',
        'Inner attention',
        'How the words of the outlined sentence divide their attention among themselves; white is '
        'an even share. In the last panel, each word has a map of its attention to all words.',
        _inner_attention,
        is_open=False,
    ),
    Section(
        'tables',
        'Position tables',
        'The numbers that each stage adds to the logits of every sentence and key. In the place of '
        'each sentence is a small map of all keys: on the grid of the pretraining images, and '
        'resized to the grid of this image.',
        _tables,
        is_open=False,
    ),
    Section(
        'tsne',
        't-SNE',
        f'Every point is a channel, as in the TNT paper: the {_MOST_POINTS} that vary most if '
        'there are more. Channels with similar maps are close to each other; other distances '
        'have no meaning.',
        _points,
        is_open=False,
    ),
)
"""All figures of an image, in the order of the page."""


def _over_image(title: str, values: np.ndarray, cell: Size, **options: Any) -> Panel:
    """A map over the image, whose places have this size."""
    place = (0, 0, values.shape[1] * cell[1], values.shape[0] * cell[0])
    return Panel(title, values, place, **options)


def _parts(recording: Recording) -> Iterator[tuple[str, list[Level]]]:
    """The maps of the backbone, and of the neck if there is one."""
    for heading, levels in (('backbone', recording.stages()), ('neck', recording.necks)):
        if levels:
            yield heading, levels


def _some_channels(scene: RecordedScene, level: Level, number: int) -> list[Panel]:
    """The chosen channels; else those that stand out at the choice, or that vary most."""
    feature = level.feature
    spread = feature.std(axis=(1, 2))
    if scene.choice.given:
        inside = feature[:, scene.choice.covers(feature.shape[1:], level.cell)].mean(axis=1)
        order = np.argsort(-(inside - feature.mean(axis=(1, 2))) / np.maximum(spread, 1e-9))
    else:
        order = np.argsort(-spread, kind='stable')
    chosen = [c for c in scene.channels if c < len(feature)] or order[:number]
    scale = around(0, 'activation', feature[chosen])
    return [_over_image(f'channel {c}', feature[c], level.cell, scale=scale) for c in chosen]


def _on_keys(block: BlockRecord, heads: Tensor) -> np.ndarray:
    """The mean of heads (heads, n + M) on the grid of the keys."""
    return as_numpy(heads.mean(dim=0)[block.class_tokens :]).reshape(block.key_hw)


def _tiles(pairs: np.ndarray, hw: Grid, key_hw: Grid) -> np.ndarray:
    """(h*w, i*j) -> (h*i, w*j): in the place of each token, a map of its keys."""
    grid = pairs.reshape(*hw, *key_hw).swapaxes(1, 2)
    return grid.reshape(hw[0] * key_hw[0], hw[1] * key_hw[1])


def _averaged(heads: int) -> str:
    return f'{heads} heads, averaged' if heads > 1 else '1 head'


def _title(level: Level) -> str:
    channels, *hw = level.feature.shape
    return f'{level.name}: {channels} channels, {_size(hw)}'


def _size(hw: Sequence[int]) -> str:
    return f'{hw[0]} x {hw[1]}'


def to_colours(feature: np.ndarray) -> tuple[np.ndarray, float]:
    """The first three principal components as red, green and blue: (C, h, w) -> (h, w, 3).

    Each is scaled from its 1st to its 99th percentile. Also returns the share of the variance kept.
    """
    # Imported late: only the extra `vis` installs it.
    from sklearn.decomposition import PCA

    places = feature.reshape(len(feature), -1).T
    colours, kept = np.full((len(places), 3), 0.5), 0.0
    if np.ptp(places, axis=0).any():
        pca = PCA(min(3, len(feature), len(places) - 1), random_state=0).fit(places)
        components, kept = pca.transform(places), pca.explained_variance_ratio_.sum()
        low, high = np.percentile(components, (1, 99), axis=0)
        scaled = (components - low) / np.maximum(high - low, 1e-9)
        colours[:, : pca.n_components_] = scaled.clip(0, 1)
    return colours.reshape(*feature.shape[1:], 3), float(kept)


def similarity(feature: np.ndarray, covered: np.ndarray) -> np.ndarray:
    """Compare all places with the mean of some of them: (C, h, w), (h, w) bool -> (h, w).

    Returns:
        Cosine similarities in [-1, 1]. The mean of the map is subtracted first, because features
        shared by all places would make everything similar.
    """
    feature = feature - feature.mean(axis=(1, 2), keepdims=True)
    unit = feature / np.maximum(np.linalg.norm(feature, axis=0), 1e-9)
    mean = feature[:, covered].mean(axis=1)
    return np.tensordot(mean / max(np.linalg.norm(mean), 1e-9), unit, axes=1)


def scatter_channels(feature: np.ndarray) -> np.ndarray:
    """Embed channels in the plane, similar maps close together: (C, h, w) -> (C, 2)."""
    from sklearn.manifold import TSNE

    channels = feature.reshape(len(feature), -1)
    perplexity = min(30, (len(channels) - 1) / 3)
    return TSNE(perplexity=perplexity, init='random', random_state=0).fit_transform(channels)
