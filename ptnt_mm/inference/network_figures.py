"""What recordings show, as rows of panels: maps, words, attention, position tables, t-SNE."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from ptnt_mm.inference.recording import BlockRecord, Level, Recording, Size, as_numpy
from ptnt_mm.visualization.panels import Panel, Points, Row, Scale, around_zero, from_zero
from ptnt_mm.visualization.projections import scatter_channels, to_colours

Levels = Callable[[Recording], list[Level]]

_OVER_IMAGE = 0.65


class Scene(NamedTuple):
    """An image, what one or two networks made of it, and what is asked of them."""

    image: np.ndarray  # (H, W, 3) uint8, RGB
    recordings: dict[str, Recording]  # by the networks' labels; '' if there is one
    query: tuple[float, float]  # a pixel (x, y) of the sentence whose attention is shown
    channels: Sequence[int] = ()  # those to show; the strongest if there are none

    def panel(self, title: str, values: np.ndarray, cell: Size, **options: Any) -> Panel:
        """A map (h, w) or (h, w, 3) over the image, with places of this size."""
        (height, width), (h, w) = self.image.shape[:2], values.shape[:2]
        view, extent = (0, width, height, 0), (0, w * cell[1], h * cell[0], 0)
        return Panel(title, values, extent, image=self.image, view=view, **options)


class Section(NamedTuple):
    """A figure: its file, its title, how to read it, why there may be none, and how it is made."""

    file: str
    title: str
    text: str
    absent: str
    rows_of: Callable[[Scene, Recording], Iterator[Row]]

    def rows(self, scene: Scene) -> list[Row]:
        """The rows of all networks, like ones together."""
        made = (self.rows_of(scene, recording) for recording in scene.recordings.values())
        return [
            row._replace(heading=f'{label}: {row.heading}' if label else row.heading)
            for rows in zip_longest(*made)
            for label, row in zip(scene.recordings, rows, strict=True)
            if row is not None
        ]


def _colours(levels_of: Levels, scene: Scene, recording: Recording) -> Iterator[Row]:
    """Maps in three colours, alone and over the image, four in a row."""
    coloured = [(level, *to_colours(level.feature)) for level in levels_of(recording)]
    for first in range(0, len(coloured), 4):
        for opacity, where in ((1.0, 'alone'), (_OVER_IMAGE, 'over the image')):
            panels = [
                scene.panel(
                    f'{_title(level)}\n{kept:.0%} of the variance',
                    colours,
                    level.cell,
                    opacity=opacity,
                )
                for level, colours, kept in coloured[first : first + 4]
            ]
            yield Row(where, panels)


def _channels(levels_of: Levels, scene: Scene, recording: Recording) -> Iterator[Row]:
    """The strongest channels of maps, or the chosen ones."""
    for level in levels_of(recording):
        chosen = [c for c in scene.channels if c < len(level.feature)]
        yield Row(_title(level), _channel_panels(scene, level, chosen or _strongest(level, 8)))


def _words(scene: Scene, recording: Recording) -> Iterator[Row]:
    """The words of each nested block."""
    for block in recording.nested():
        level = block.words_in_place()
        mean, (colours, kept) = level.feature.mean(axis=0), to_colours(level.feature)
        scale = around_zero('activation', mean)
        panels = [
            scene.panel('mean of the channels', mean, level.cell, scale=scale),
            scene.panel(f'three colours, {kept:.0%}', colours, level.cell),
            *_channel_panels(scene, level, _strongest(level, 3)),
        ]
        yield Row(_title(level), panels)


def _attention(scene: Scene, recording: Recording) -> Iterator[Row]:
    """What the queried sentence takes from where, and what the table adds."""
    for block in recording.shown():
        row, column, box = block.sentence_at(*scene.query)
        sentence, attention = row * block.hw[1] + column, block.module.outer_attn
        maps = {'attention': block.attention(sentence)}
        if block.position is not None:
            maps['without the table'] = block.attention(sentence, with_table=False)
        if block.class_tokens:
            maps['of the class token'] = block.attention(-1)
        placed = {title: _in_place(block, 100 * weights) for title, weights in maps.items()}
        over = dict(cell=block.key_cell, opacity=_OVER_IMAGE, frame=box)
        scale = from_zero('attention (%)', *placed.values())
        panels = [
            scene.panel(title, values, scale=scale, **over) for title, values in placed.items()
        ]
        if block.position is not None:
            bias = _in_place(block, block.bias(sentence)[0, :, 0])
            scale = around_zero('added to the logits', bias)
            panels.append(scene.panel('the table at this sentence', bias, scale=scale, **over))
        yield Row(f'{block.name}: mean of {attention.num_heads} heads', panels)


def _inner_attention(scene: Scene, recording: Recording) -> Iterator[Row]:
    """What the words of the queried sentence take from each other."""
    for block in recording.nested():
        row, column, box = block.sentence_at(*scene.query)
        weights = 100 * as_numpy(block.inner_attention(row * block.hw[1] + column))
        matrix, words = weights.mean(axis=0), weights.shape[-1]
        received = matrix.mean(axis=0).reshape(math.isqrt(words), -1)
        left, right, bottom, top = box
        near = (2 * left - right, 2 * right - left, 2 * bottom - top, 2 * top - bottom)
        over = dict(extent=box, image=scene.image, frame=box, view=near)
        scale, labels = from_zero('mean (%)', received), ('taken from word', 'by word')
        yield Row(
            f'{block.name}: mean of {len(weights)} heads',
            [
                Panel('the sentence', None, **over),
                Panel('what is taken from each word', received, scale=scale, **over),
                _matrix('of all words', matrix, from_zero('attention (%)', matrix), *labels),
            ],
        )


def _tables(scene: Scene, recording: Recording) -> Iterator[Row]:
    """The table of each stage, as learned and resized, and a row of both in place."""
    for block in recording.shown():
        if block.position is None:
            continue
        row, column, box = block.sentence_at(*scene.query)
        learned, resized = map(as_numpy, block.tables())
        # Pretraining images are square.
        side, key_side = (math.isqrt(size) for size in learned.shape)
        place = row * side // block.hw[0] * side + column * side // block.hw[1]
        scale = around_zero('added to the logits', learned)
        labels, framed = ('key', 'sentence'), dict(scale=scale, frame=box)
        before = learned[place].reshape(key_side, key_side)
        after = resized[row * block.hw[1] + column].reshape(block.key_hw)
        stretched = tuple(size / key_side for size in scene.image.shape[:2])
        yield Row(
            f'{block.name}: learned for {side} x {side} sentences, used for {_size(block.hw)}',
            [
                _matrix(f'as learned: {_size(learned.shape)}', learned, scale, *labels),
                _matrix(f'resized: {_size(resized.shape)}', resized, scale, *labels),
                scene.panel('one sentence, as learned', before, stretched, **framed),
                scene.panel('one sentence, resized', after, block.key_cell, **framed),
            ],
        )


def _points(scene: Scene, recording: Recording) -> Iterator[Row]:
    """The channels of each stage as points, near each other if their maps are alike."""
    panels = []
    for level in recording.stages():
        spread = level.feature.std(axis=(1, 2))
        points = np.column_stack([scatter_channels(level.feature), spread])
        scale, labels = from_zero('standard deviation', spread), ('t-SNE 1', 't-SNE 2')
        panels.append(Points(_title(level), points, scale=scale, labels=labels))
    yield Row('every point is a channel', panels)


SECTIONS = (
    Section(
        'stages',
        'Stages in three colours',
        'The channels behind each stage, reduced to three by PCA and shown as red, green and blue: '
        'like colours, like features, within one map. The percentage is the share of the variance '
        'that the three components keep.',
        '',
        partial(_colours, Recording.stages),
    ),
    Section(
        'channels',
        'Channels of the stages',
        'The channels that vary most over the image, or the chosen ones, counted from 0. '
        'Activations have no unit, and each row has a scale of its own.',
        '',
        partial(_channels, Recording.stages),
    ),
    Section(
        'neck',
        'Neck in three colours',
        'As the stages, for each level that each part of the neck returns.',
        'There is no neck.',
        partial(_colours, Recording.necks),
    ),
    Section(
        'neck_channels',
        'Channels of the neck',
        'As the channels of the stages.',
        'There is no neck.',
        partial(_channels, Recording.necks),
    ),
    Section(
        'words',
        'Words',
        'The words behind each block that has any, put back in place as one map: the mean of their '
        'channels, as the TNT paper shows it, all channels in three colours, and the three that '
        'vary most.',
        'This backbone has no words.',
        _words,
    ),
    Section(
        'attention',
        'Attention of a sentence',
        'How the outlined sentence divides its attention, 100 % for the whole map. Stages 1 and 2 '
        'look at averages of 4 x 4 and 2 x 2 sentences. Without the table, the same queries and '
        'keys are compared by their content alone.',
        'The backbone is none of this package.',
        _attention,
    ),
    Section(
        'inner_attention',
        'Inner attention of its words',
        'How the words of the outlined sentence, counted row by row, divide their attention among '
        'each other: each row of the matrix adds up to 100 %.',
        'This backbone has no words.',
        _inner_attention,
    ),
    Section(
        'tables',
        'Relative position tables',
        'What each stage learned to add to the logits of every sentence and key, mean of the heads: '
        'for the grid of the pretraining images, and resized to that of this image. On the right, '
        'the row of the outlined sentence, put in place.',
        'This backbone has no relative position table.',
        _tables,
    ),
    Section(
        'tsne',
        't-SNE of the channels',
        'Every point is a channel of the sentences, as in the TNT paper. Channels with like maps '
        'are near each other; places and distances mean nothing else.',
        '',
        _points,
    ),
)
"""All that is drawn, in this order."""


def _channel_panels(scene: Scene, level: Level, channels: Sequence[int]) -> list[Panel]:
    """Channels of one scale."""
    scale = around_zero('activation', level.feature[channels])
    return [
        scene.panel(f'channel {c}', level.feature[c], level.cell, scale=scale) for c in channels
    ]


def _strongest(level: Level, number: int) -> list[int]:
    """The channels that vary most over the image."""
    return np.argsort(-level.feature.std(axis=(1, 2)), kind='stable')[:number].tolist()


def _matrix(title: str, values: np.ndarray, scale: Scale, x: str, y: str) -> Panel:
    """A matrix whose rows and columns are counted from 1."""
    extent = (0.5, values.shape[1] + 0.5, values.shape[0] + 0.5, 0.5)
    return Panel(title, values, extent, scale, labels=(x, y))


def _in_place(block: BlockRecord, heads: Tensor) -> np.ndarray:
    """The mean of heads (heads, n + M) on the grid of the keys."""
    return as_numpy(heads.mean(dim=0)[block.class_tokens :]).reshape(block.key_hw)


def _title(level: Level) -> str:
    channels, *hw = level.feature.shape
    return f'{level.name}: {channels} channels, {_size(hw)}'


def _size(hw: Sequence[int]) -> str:
    return f'{hw[0]} x {hw[1]}'
