"""An image in several networks, and the point or box that the reader chose."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ptnt_mm.drawing.panels import Box
from ptnt_mm.models.tokens import Grid
from ptnt_mm.visualize.recording import BlockRecord, Recording, Size


class ChosenPlace(NamedTuple):
    """A point or a box of the image that the reader chose."""

    name: str
    box: Box  # a point has zero width and height
    given: bool = True  # False for the middle of the image

    @property
    def middle(self) -> tuple[float, float]:
        """The middle (x, y)."""
        x, y, width, height = self.box
        return x + width / 2, y + height / 2

    def covers(self, hw: Grid, cell: Size) -> np.ndarray:
        """The cells of a map (h, w) whose centres are inside; if none are, the middle one."""
        place = _place(self.middle, hw, cell)
        inside = []
        for n, size, first, length, at in zip(
            hw, cell, self.box[1::-1], self.box[:1:-1], place, strict=True
        ):
            middles = (np.arange(n) + 0.5) * size
            covered = (first <= middles) & (middles <= first + length)
            covered[at] |= not covered.any()
            inside.append(covered)
        return np.outer(*inside)


class RecordedScene(NamedTuple):
    """Recordings of an image, and the reader's choice."""

    recordings: dict[str, Recording]  # by what headings call them; '' for the only one
    choice: ChosenPlace
    channels: Sequence[int] = ()  # to show; if there are none, see `_some_channels`

    def sentence(self, block: BlockRecord) -> tuple[int, Box]:
        """The number of the sentence in the middle of the choice, and its place."""
        row, column = _place(self.choice.middle, block.hw, block.cell)
        height, width = block.cell
        return row * block.hw[1] + column, (column * width, row * height, width, height)

    def sentences(self, block: BlockRecord) -> tuple[np.ndarray, Box]:
        """The numbers of the sentences that the choice covers, and their place."""
        covered = self.choice.covers(block.hw, block.cell)
        rows, columns = (np.flatnonzero(covered.any(axis=axis)) for axis in (1, 0))
        height, width = block.cell
        place = columns[0] * width, rows[0] * height, len(columns) * width, len(rows) * height
        return np.flatnonzero(covered), place


def _place(point: tuple[float, float], hw: Grid, cell: Size) -> tuple[int, int]:
    """Row and column of the place of a map that covers a point (x, y)."""
    (x, y), (h, w), (height, width) = point, hw, cell
    return min(int(y / height), h - 1), min(int(x / width), w - 1)
